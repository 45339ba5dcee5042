package main

import (
	"context"
	"flag"
	"strconv"
	"sync"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/serving"
)

// checks sets how many cases a property draws, unless -rapid.checks says so: a case on a server takes a second. With
// -short it draws a third.
func checks(t *testing.T, n int) {
	t.Helper()
	if checksGiven() {
		return
	}
	if testing.Short() {
		n = (n + 2) / 3
	}
	before := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
}

// checksGiven reports whether the command line says how many cases to draw. It is asked once: a flag that a test sets
// looks as if it had been given.
var checksGiven = sync.OnceValue(func() bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	return given
})

// TestMemoryAndTemporalAgree: a random case gives the same trace in memory and as workflows on a server, and the
// workflows' histories replay to the same commands.
func TestMemoryAndTemporalAgree(t *testing.T) {
	checks(t, 10)
	e := &watched{temporalEngine: temporalForTests(t).(*temporalEngine)}
	rapid.Check(t, func(rt *rapid.T) {
		c := caseOf(false).Draw(rt, "case")
		e.opened = nil
		name := graphName(t)
		want := answersOf(rt, context.Background(), memoryEngine{}, c, name)
		agree(rt, c, want, answersOf(rt, context.Background(), e, c, name))
		e.replay(rt, c)
	})
}

// TestEveryCheckpointGivesTheSameSuffixOnTemporal is the property of that name on a server.
func TestEveryCheckpointGivesTheSameSuffixOnTemporal(t *testing.T) {
	checks(t, 3)
	e := temporalForTests(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := caseOf(true).Draw(rt, "case")
		if long(rt, c) {
			rt.Skip("it has too many supersteps to run it from each of them on a server")
		}
		sameSuffixes(rt, e, c, graphName(t))
	})
}

// long reports whether a case's run has more supersteps or tasks than can be repeated from every checkpoint in a test.
func long(t rapid.TB, c *source) bool {
	const supersteps, tasks = 8, 24
	recorded := withActions(t, c, doc{"history": true})
	answers := answersOf(t, context.Background(), memoryEngine{}, recorded, rootName)
	ran := 0
	run := answers.(map[string]any)["answers"].([]any)[0].(map[string]any)
	for _, n := range run["runs"].(map[string]any) {
		ran += int(n.(int64))
	}
	return len(historyIn(t, recorded, answers, 1)) > supersteps || ran > tasks
}

// watched is the Temporal engine with the threads that it opened.
type watched struct {
	*temporalEngine
	opened []*temporalThreads
}

func (w *watched) open(ctx context.Context, g *graph) (threads, error) {
	opened, err := w.temporalEngine.open(ctx, g)
	if err == nil {
		w.opened = append(w.opened, opened.(*temporalThreads))
	}
	return opened, err
}

// replay runs each history of the case through the workflow again: it must give the commands that it gave.
func (w *watched) replay(t rapid.TB, c *source) {
	for _, threads := range w.opened {
		for _, x := range threads.runs {
			replayer := worker.NewWorkflowReplayer()
			serving.Register(&replayed{WorkflowReplayer: replayer}, w.temporal, serving.Config{Graphs: []*graphadapter.Graph{threads.graph}})
			if err := replayer.ReplayWorkflowHistory(nil, w.history(t, x)); err != nil {
				t.Fatalf("replaying run %s of %s: %v\nin the case\n%s", x.run, x.thread, err, c.text)
			}
		}
	}
}

func (w *watched) history(t rapid.TB, x execution) *historypb.History {
	events := w.temporal.GetWorkflowHistory(context.Background(), x.thread, x.run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var out historypb.History
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		out.Events = append(out.Events, e)
	}
	return &out
}

// replayed lets a replayer take the product's whole registration: it runs no activities.
type replayed struct {
	worker.Registry
	worker.WorkflowReplayer
}

func (r *replayed) RegisterWorkflow(w any) { r.WorkflowReplayer.RegisterWorkflow(w) }

func (r *replayed) RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions) {
	r.WorkflowReplayer.RegisterWorkflowWithOptions(w, options)
}

func (r *replayed) RegisterDynamicWorkflow(w any, options workflow.DynamicRegisterOptions) {
	r.WorkflowReplayer.RegisterDynamicWorkflow(w, options)
}

func (*replayed) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}

func (*replayed) RegisterActivityWithOptions(any, activity.RegisterOptions) {}
