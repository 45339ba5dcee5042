package graphtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// ending is how a run ended.
type ending struct {
	status string
	values map[string]string // canonical JSON
	books  []string
	// asked are the answers that were given, by question.
	asked map[string]pregel.Value
	// points are those that the run came to after its last crash, in order.
	points []string
}

func (tr *trial) conclude(end *ending) error {
	switch tr.loop.Status() {
	case pregel.StatusDone:
		end.status = "finished"
	case pregel.StatusDrained:
		end.status = "stopped: " + tr.loop.Err().Error()
	default:
		end.status = "failed: " + tr.loop.Err().Error()
	}
	snapshot, err := tr.program.Snapshot(tr.loop.Thread(), tr.loop.Thread().Head, true)
	if err != nil {
		return err
	}
	end.values = map[string]string{}
	for name, v := range snapshot.Values {
		end.values[name] = canonical(v)
	}
	tr.crashes.mu.Lock()
	defer tr.crashes.mu.Unlock()
	end.points = slices.Clone(tr.crashes.seen)
	return nil
}

// same says how an ending differs from the one without a crash, "" when it does not.
func (m *matrix) same(got ending) string {
	return differs(m.want, &got, m.settings.ignored, "without the crash")
}

// differs says how an ending differs from the one it should be, "" when it does not; without says when that came about.
func differs(want, got *ending, ignored map[string]bool, without string) string {
	var out []string
	if got.status != want.status {
		out = append(out, fmt.Sprintf("it ended as %s, %s as %s", got.status, without, want.status))
	}
	names := maps.Clone(want.values)
	maps.Copy(names, got.values)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if want, got := want.values[name], got.values[name]; want != got && !ignored[name] {
			out = append(out, fmt.Sprintf("the state's field %q is %s, %s %s", name, orNothing(got), without, orNothing(want)))
		}
	}
	if d := difference(want.books, got.books); d != "" {
		out = append(out, "the writes to the outside are not those "+without+": "+d)
	}
	return strings.Join(out, "\n")
}

func orNothing(v string) string {
	if v == "" {
		return "nothing"
	}
	return v
}
