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
// nobody else wrote to its channel and the task came to these very writes, however they came. In any other case it is made anew.
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
			ends := map[string]string{}
			for _, way := range []string{"unseen", "direct", "by JSON"} {
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
				if way != "unseen" {
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
					if way == "by JSON" {
						o = through(t, o)
					}
					loop.Deliver(tasks[i], o)
				}
				if want := c.reduced; way != "unseen" && r.calls-before != want {
					t.Errorf("%s: the reducer was called %d times, want %d", way, r.calls-before, want)
				}
				ends[way] = loop.Thread().Head.Checkpoint.Digest + valuesText(loop.Output())
			}
			for way, end := range ends {
				if end != ends["unseen"] {
					t.Errorf("%s: the superstep ends with\n%s\nwant\n%s", way, end, ends["unseen"])
				}
			}
		})
	}
}
