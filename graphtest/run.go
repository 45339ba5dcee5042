package graphtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"maps"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/store"
)

// run runs the graph to its end, with workers that crash at these points, one after the other.
func (m *matrix) run(t testing.TB, mode Mode, crashAt []string, v variant) (ending, error) {
	tr := &trial{m: m, mode: mode, variant: v, ctx: store.NewContext(t.Context(), m.settings.newStore(t)),
		crashes: crashes{left: crashAt, dead: map[*process]bool{}, met: map[string]bool{}}}
	if err := tr.open(t); err != nil {
		return ending{}, err
	}
	defer tr.close()
	end, err := tr.drive()
	if err != nil {
		return end, err
	}
	if unused := tr.crashes.unused(); len(unused) > 0 && !strings.Contains(unused[0], heartbeatPoint) {
		tr.wrong("the run never came to the point %s: what it does depends on more than its input and answers", unused[0])
	}
	end.books = tr.outside.books()
	if tr.verify != nil {
		if err := tr.verify(); err != nil {
			tr.wrong("the outside is not as it should be: %v", err)
		}
	}
	if len(tr.problems) > 0 {
		return end, errors.New(strings.Join(tr.problems, "\n"))
	}
	return end, nil
}

// open makes the graph as this run has it: with a cache of its own, because what another run kept is not to be found.
func (tr *trial) open(t testing.TB) error {
	graph := tr.m.graph
	if tr.m.settings.each != nil {
		made, verify := tr.m.settings.each(t)
		graph, tr.verify = made.Adapter(), verify
	}
	tr.outside = newOutside(&tr.m.settings, tr.m.settings.each != nil)
	tr.graph = &graphadapter.Graph{Spec: graph.Spec, Nodes: graph.Nodes, Reducers: graph.Reducers, Subgraphs: graph.Subgraphs,
		CheckInput: graph.CheckInput, CheckUpdate: graph.CheckUpdate, Effects: graph.Effects, Cache: graphadapter.NewMemoryCache(0, 0)}
	program, err := tr.graph.Program()
	tr.program = program
	return err
}

// drive begins the run and goes on with answers until it has ended.
func (tr *trial) drive() (ending, error) {
	end := ending{asked: map[string]pregel.Value{}}
	tr.life = life.New(matrixThread, tr.graph.Spec.Name, tr, life.State{})
	thread, in := pregel.NewThread(), pregel.Input{Value: tr.m.input}
	options := pregel.Options{RecursionLimit: graphadapter.DefaultRecursionLimit, Budget: tr.m.settings.budget}
	for {
		var err error
		if tr.loop, err = tr.program.Start(thread, in, options, false, nil); err != nil {
			return end, err
		}
		options.Budget = nil // the thread has it
		if tr.mode == Sync {
			err = tr.tasks()
		} else {
			err = tr.segments()
		}
		if err != nil {
			return end, err
		}
		switch status := tr.loop.Status(); status {
		case pregel.StatusWaiting:
			if err := tr.answer(end.asked); err != nil {
				return end, err
			}
			in = pregel.Input{Resume: &pregel.Resume{Answers: tr.life.GiveAnswers()}}
		case pregel.StatusBreakpoint:
			in = pregel.Input{}
		default:
			return end, tr.conclude(&end)
		}
		if thread = tr.loop.Thread(); tr.restore {
			if thread, err = tr.stored(thread); err != nil {
				return end, err
			}
		}
	}
}

// stored is a thread as a later run finds it, with what it knows of people.
func (tr *trial) stored(thread *pregel.Thread) (*pregel.Thread, error) {
	known, err := sent(tr.life.State)
	if err != nil {
		return nil, err
	}
	tr.life = life.New(matrixThread, tr.graph.Spec.Name, tr, known)
	raw, err := tr.program.EncodeThread(thread)
	if err != nil {
		return nil, err
	}
	return tr.program.DecodeThread(raw)
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
	if m := tr.loop.Thread().Meter(); m != nil {
		end.spent = m.Spent
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
	if got.spent.Tokens < want.spent.Tokens || got.spent.MicroUSD < want.spent.MicroUSD || got.spent.Writes < want.spent.Writes ||
		got.spent.Supersteps != want.spent.Supersteps {
		out = append(out, fmt.Sprintf("counted as spent is %+v, %s %+v", got.spent, without, want.spent))
	}
	if d := difference(want.books, got.books); d != "" {
		out = append(out, "the writes to the outside are not those "+without+": "+d)
	}
	return strings.Join(out, "\n")
}
