package pregel_test

import (
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// counted is a reducer that appends and counts.
type counted struct {
	pregel.Reducer
	calls int
}

func (c *counted) Name() string { return "counted/v1" }

func (c *counted) Reduce(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
	c.calls++
	return c.Reducer.Reduce(current, updates)
}

// TestWhatBranchesSawIsNotMadeAgain: a long value that a task's branches saw is the one that the superstep ends with, when
// nobody else wrote to its channel and the task came to these very writes. In any other case it is made anew. Each outcome comes
// by JSON as well, where nothing is known of what was seen.
func TestWhatBranchesSawIsNotMadeAgain(t *testing.T) {
	builtin, _ := pregel.Builtin("append/v1")
	long, short := pregel.Value(`["`+strings.Repeat("x", 2000)+`"]`), pregel.Value(`["y"]`)
	for name, c := range map[string]struct {
		input         pregel.Value
		both          bool // b writes too
		seen, written pregel.Value
		reduced       int // calls, what the branches of a see left out
	}{
		"a long list":                 {input: pregel.Value(`{"all":` + string(long) + `}`), seen: short, written: short},
		"a list that becomes long":    {input: pregel.Value(`{}`), seen: long, written: long},
		"a short list":                {input: pregel.Value(`{}`), seen: short, written: short, reduced: 1},
		"another task writes as well": {input: pregel.Value(`{}`), both: true, seen: long, written: long, reduced: 1},
		"another attempt was seen":    {input: pregel.Value(`{}`), seen: long, written: pregel.Value(`["z"]`), reduced: 1},
	} {
		t.Run(name, func(t *testing.T) {
			ends := map[bool]string{}
			for _, direct := range []bool{true, false} {
				r := &counted{Reducer: builtin}
				p, err := pregel.Compile(&pregel.Spec{
					Version: pregel.SpecVersion, Name: "g", Channels: []pregel.ChannelSpec{{Name: "all", Kind: pregel.KindReduce, Reducer: r.Name()}},
					Nodes: []pregel.NodeSpec{{Name: "a"}, {Name: "b"}},
					Edges: []pregel.Edge{{From: pregel.Start, To: "a"}, {From: pregel.Start, To: "b"}},
				}, map[string]pregel.Reducer{r.Name(): r})
				if err != nil {
					t.Fatal(err)
				}
				loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: c.input}, pregel.Options{RecursionLimit: 9}, false, nil)
				if err != nil {
					t.Fatal(err)
				}
				tasks := loop.Ready()
				write := func(v pregel.Value) pregel.Outcome {
					return pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "all", Value: v}}}}
				}
				if direct {
					if _, err := p.Read(tasks[0], write(c.seen).Update); err != nil {
						t.Fatal(err)
					}
				}
				before := r.calls
				outcomes := []pregel.Outcome{write(c.written), {}}
				if c.both {
					outcomes[1] = write(short)
				}
				for i, o := range outcomes {
					if !direct {
						o = through(t, o)
					}
					loop.Deliver(tasks[i], o)
				}
				if want := c.reduced; direct && r.calls-before != want {
					t.Errorf("the reducer was called %d times, want %d", r.calls-before, want)
				}
				ends[direct] = loop.Thread().Head.Checkpoint.Digest + valuesText(loop.Output())
			}
			if ends[true] != ends[false] {
				t.Errorf("the superstep ends with\n%s\nwhere its outcomes come by JSON with\n%s", ends[true], ends[false])
			}
		})
	}
}
