package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// TestLive: lines "EXECUTION.SEQUENCE VALUE" are emissions of the task 1/say, "reset N" among them, "'TEXT" are pieces of a message, and "end
// VALUE,VALUE" is what the step brings when it ends. What nodes say is shown once.
func TestLive(t *testing.T) {
	for name, c := range map[string]struct{ comes, want string }{
		"while it runs":                {"1.0 a;1.1 b;end a,b", "…:a;…:b;ok:"},
		"its end comes with the step":  {"1.0 a;end a,b", "…:a;ok:b"},
		"nothing was live":             {"end a,b", "ok:;a;b"},
		"one is missed":                {"1.0 a;1.2 c;1.3 d;end a,b,c,d", "…:a;ok:;b;c;d"},
		"its beginning is missed":      {"1.1 b;end a,b", "ok:;a;b"},
		"twice":                        {"1.0 a;1.0 a;1.1 b;1.0 a;end a,b", "…:a;…:b;ok:"},
		"late":                         {"1.0 a;end a,b;1.1 b", "…:a;ok:b"},
		"a lost worker":                {"1.0 a;1.1 b;2.0 a;2.1 b;2.2 c;1.2 x;end a,b,c", "…:a;…:b;…:c;ok:"},
		"a lost worker, then another":  {"1.0 a;1.1 b;2.0 a;2.1 x;end a,x", "…:a;…:b;…:x;ok:"},
		"a second attempt":             {"1.0 a;2.0 reset 2;2.1 a;2.2 b;end a,a,b", "…:a;…:a;…:b;ok:"},
		"given back":                   {"1.0 a;2.0 reset 1;2.1 a;2.2 b;end a,b", "…:a;…:b;ok:"},
		"a message":                    {"1.0 'Hel;1.1 'lo ;1.2 'you;end ", "…:Hello you;ok:"},
		"a message between values":     {"1.0 a;1.1 'Hel;1.2 'lo;1.3 b;end a,b", "…:a;…:Hello;…:b;ok:"},
		"a message of a lost worker":   {"1.0 'Hel;2.0 'Hel;2.1 'lo;end ", "…:Hello;ok:"},
		"what a terminal would act on": {"1.0 \x1b[2J;1.1 '\x1b[2Jx;end ", `…:\u001b[2J;…:\u001b[2Jx;ok:`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			f := New(&out).Followed()
			for line := range strings.SplitSeq(c.comes, ";") {
				if notes, ends := strings.CutPrefix(line, "end "); ends {
					f.Show(stepEnd(notes))
					continue
				}
				f.Live(emissionOf(t, line))
			}
			f.Close()
			var got []string
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "step 1  say"))
				line = strings.TrimSpace(strings.Replace(line, "…", "…:", 1))
				if after, ends := strings.CutPrefix(line, "ok   5ms"); ends {
					line = "ok:" + strings.TrimSpace(after)
				}
				got = append(got, strings.Replace(line, ":  ", ":", 1))
			}
			for i := range got {
				head, text, found := strings.Cut(got[i], ":")
				if found {
					got[i] = head + ":" + strings.TrimSpace(text)
				}
			}
			require.Equal(t, c.want, strings.Join(got, ";"))
		})
	}
}

func stepEnd(notes string) thread.Progress {
	p := thread.Progress{Step: 1, Node: "say", Task: "1/say", State: thread.ProgressOK, Duration: 5 * time.Millisecond}
	for note := range strings.SplitSeq(notes, ",") {
		if note != "" {
			p.Notes = append(p.Notes, json.RawMessage(fmt.Sprintf("%q", note)))
		}
	}
	return p
}

func emissionOf(t *testing.T, line string) live.Emission {
	at, text, _ := strings.Cut(line, " ")
	e := live.Emission{Thread: "t", Run: "r", Task: "1/say"}
	_, err := fmt.Sscanf(at, "%d.%d", &e.Execution, &e.Sequence)
	require.NoError(t, err)
	raw := func(s string) pregel.Value {
		v, err := json.Marshal(s)
		require.NoError(t, err)
		return v
	}
	switch piece, message := strings.CutPrefix(text, "'"); {
	case message:
		e.Emission = pregel.Emission{Kind: pregel.EmissionMessage, Value: pregel.Value(`{"id":"m","role":"assistant","content":` + string(raw(piece)) + `}`)}
	case strings.HasPrefix(text, "reset "):
		e.Emission.Kind = pregel.EmissionReset
		_, err = fmt.Sscanf(text, "reset %d", &e.Emission.Attempt)
		require.NoError(t, err)
	default:
		e.Emission.Value = raw(text)
	}
	return e
}

// TestStepAndNode reads the keys of tasks.
func TestStepAndNode(t *testing.T) {
	for key, want := range map[string]string{"1/say": "1 say", "3/write:2": "3 write", "2/team|14/agent": "2.14 agent", "b2!2/team|1/agent:0": "2.1 agent", "b2!7/x": "7 x", "": " "} {
		step, node := stepAndNode(key)
		require.Equal(t, want, step+" "+node, key)
	}
}
