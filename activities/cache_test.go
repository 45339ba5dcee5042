package activities_test

import (
	"context"
	"reflect"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// TestRunsOnOneWorkerShareItsCache: what one run's node returned, another's does not compute again.
func TestRunsOnOneWorkerShareItsCache(t *testing.T) {
	t.Parallel()
	r, ran := newRig(t), &seen[string]{}
	g := one(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		ran.add(task.Info().Thread)
		return logs("done"), nil
	})
	work := g.Nodes["work"]
	work.Cache = &graphadapter.CachePolicy{}
	g.Nodes["work"] = work
	r.work(g)
	first := r.start(protocol.GraphInput{Graph: "one"})
	if log := r.log(first); log != `["done"]` {
		t.Errorf("the first run ended with %s", log)
	}
	if log := r.log(r.start(protocol.GraphInput{Graph: "one"})); log != `["done"]` {
		t.Errorf("the second run ended with %s", log)
	}
	if got := ran.list(); !reflect.DeepEqual(got, []string{first.GetID()}) {
		t.Errorf("the node ran for %v", got)
	}
	if err := g.ClearCache(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.log(r.start(protocol.GraphInput{Graph: "one"}))
	if n := len(ran.list()); n != 2 {
		t.Errorf("cleared, the node ran %d times", n)
	}
}
