package activities_test

import (
	"context"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestHandlersContextsAndDrains go through the activity.
func TestHandlersContextsAndDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := one(nil)
	g.Nodes["mend"] = graphadapter.Node{Handle: func(ctx context.Context, in graphadapter.Input, why *pregel.NodeError) (pregel.Command, error) {
		task, _ := graphadapter.TaskFrom(ctx)
		task.Drain("mended")
		return logs(why.Message, string(in.State["log"]), string(task.RunContext())), nil
	}}
	r.work(g)
	out := r.outcome(r.task("one", pregel.Task{Step: 1, Path: "work!mend", Node: "mend", State: map[string]pregel.Value{"log": pregel.Value("[]")},
		Failure: &pregel.NodeError{Type: "boom", Message: "declined", Node: "work"}}))
	const want = `["declined","[]","{\"tenant\":\"acme\"}"]`
	if len(out.Update) != 1 || string(out.Update[0].Value) != want || out.Drain != "mended" {
		t.Errorf("the handler came back with %+v", out)
	}
}
