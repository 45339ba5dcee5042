package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// TestHandlersContextsAndDrains go through the activity.
func TestHandlersContextsAndDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := one(nil)
	g.Nodes["mend"] = graphadapter.Node{Handle: func(ctx context.Context, in graphadapter.Input, why *pregel.NodeError) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		task.Drain("mended")
		return logs(why.Message, in.State["log"].String(), string(task.RunContext())), nil
	}}
	r.work(g)
	out := r.outcome(r.task("one", pregel.Task{Step: 1, Path: "work!mend", Node: "mend", State: map[string]pregel.Held{"log": pregel.Hold(pregel.Value("[]"))},
		Failure: &pregel.NodeError{Type: "boom", Message: "declined", Node: "work"}}))
	const want = `["declined","[]","{\"tenant\":\"acme\"}"]`
	if len(out.Update) != 1 || string(out.Update[0].Value) != want || out.Drain != "mended" {
		t.Errorf("the handler came back with %+v", out)
	}
}

// TestAHandlerTakesOverOnAnotherWorker: the one that saw the failure is gone. The node that failed does not run again,
// and waiting for a worker that has the handler is no attempt of it.
func TestAHandlerTakesOverOnAnotherWorker(t *testing.T) {
	t.Parallel()
	r, ran, handled := newRig(t), &seen[string]{}, &seen[taskrun.Info]{}
	whole := one(func(context.Context, *taskrun.TaskRun) (pregel.Command, error) {
		ran.add("work")
		return pregel.Command{}, errors.New("declined")
	}, every(time.Millisecond, 2))
	whole.Spec.Nodes[0].ErrorHandler = "mend"
	whole.Spec.Nodes = append(whole.Spec.Nodes, pregel.NodeSpec{Name: "mend", Handler: true})
	older := &graphadapter.Graph{Spec: whole.Spec, Nodes: map[string]graphadapter.Node{"work": whole.Nodes["work"]}}
	whole.Nodes["mend"] = graphadapter.Node{Handle: func(ctx context.Context, _ graphadapter.Input, why *pregel.NodeError) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		handled.add(task.Info())
		return logs("mended: " + why.Message), nil
	}}
	_, stop := r.work(older)
	run := r.start(protocol.GraphInput{Graph: "one"})
	r.lastFailure(run, graphadapter.NodeUnservedType)
	stop()
	r.work(whole)
	if log := r.log(run); log != `["mended: declined"]` {
		t.Errorf("the run ended with %s", log)
	}
	if n := len(ran.list()); n != 2 {
		t.Errorf("the node ran %d times", n)
	}
	if all := handled.list(); len(all) != 1 || all[0].Attempt != 1 {
		t.Errorf("the handler was run as %+v", all)
	}
}
