package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter"
	"superstep.dev/test/conformance/trace"
)

// mostStarts bounds how many nodes a generated case may start. Sends can double the tasks with every superstep: one such
// case would fill the machine, and says nothing that a smaller one does not.
const mostStarts = 5000

var errGrows = errors.New("the case starts too many nodes")

// answersOf runs a generated case on an engine. The error, if it could not be run to its end, is part of what engines
// have to agree on.
func answersOf(t rapid.TB, ctx context.Context, e engine, c *source, name string) any {
	tr := newTrial(c, name)
	if tr.broken != nil {
		t.Fatal(tr.broken)
	}
	tr.run.states, tr.run.unreadable = func(int) bool { return true }, unreadable
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if _, generated := t.(*rapid.T); generated {
		tr.run.counters.bound(mostStarts, func() { cancel(errGrows) })
	}
	stop, err := e.serve(ctx, graphsOf([]*trial{tr}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	answers, err := tr.run.on(ctx, e)
	if errors.Is(context.Cause(ctx), errGrows) {
		t.Skip(errGrows) // another case is drawn in its place
	}
	out := map[string]any{"answers": answers}
	if err != nil {
		out["ended"] = err.Error()
	}
	return out
}

// unreadable stands for a state that cannot be shown, because writes that wait to be applied conflict.
const unreadable = "unreadable"

// agree fails the test where two engines answer differently. A state that one of them cannot show is not compared.
func agree(t rapid.TB, c *source, want, got any) {
	t.Helper()
	hideUnreadable(want, got)
	hideUnreadable(got, want)
	if d := trace.Compare("", want, got); d != nil {
		t.Fatalf("%s\nin the case\n%s", d, c.text)
	}
}

func hideUnreadable(from, to any) {
	one, _ := from.(map[string]any)["answers"].([]any)
	other, _ := to.(map[string]any)["answers"].([]any)
	for i := range min(len(one), len(other)) {
		if answer := one[i].(map[string]any); answer["state"] == unreadable {
			other[i].(map[string]any)["state"] = unreadable
		}
	}
}

// shuffled is an engine that lets the tasks of a superstep end in any order.
type shuffled struct{ memoryEngine }

func (s shuffled) open(ctx context.Context, g *graphadapter.Graph) (threads, error) {
	for name, n := range g.Nodes {
		run := n.Run
		if run == nil {
			continue
		}
		n.Run = func(ctx context.Context, in graphadapter.Input) (outcome, error) {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			runtime.Gosched()
			return run(ctx, in)
		}
		g.Nodes[name] = n
	}
	for _, sub := range g.Subgraphs {
		if _, err := s.open(ctx, sub); err != nil {
			return nil, err
		}
	}
	return s.memoryEngine.open(ctx, g)
}

// TestOrderOfTasksIsInNoTrace: whatever ends first, the trace is the same.
func TestOrderOfTasksIsInNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := caseOf(false).Draw(t, "case")
		want := answersOf(t, context.Background(), memoryEngine{}, c, rootName)
		agree(t, c, want, answersOf(t, context.Background(), shuffled{}, c, rootName))
	})
}
