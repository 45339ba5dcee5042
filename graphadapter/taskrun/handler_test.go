package taskrun

import (
	"context"
	"errors"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// handled is a graph whose node "pay" fails for good into the handler "mend".
func handled(handle graphadapter.HandlerFunc) *graphadapter.Graph {
	g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { panic("the failed node ran again") })
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "mend", Handler: true, Reads: []string{"amount"}})
	g.Nodes["mend"] = graphadapter.Node{Handle: handle}
	return g
}

func mendTask() *pregel.Task {
	task := payTask()
	task.Node, task.Path = "mend", "pay!mend"
	task.State["log"] = pregel.Hold(pregel.Value(`["before"]`))
	task.Failure = &pregel.NodeError{Type: "declinedError", Message: "declined", Graph: "refund", Node: "pay"}
	return task
}

// TestAnErrorHandlerTakesOver with the failed task's input, as far as it reads it, and the failure.
func TestAnErrorHandlerTakesOver(t *testing.T) {
	var got graphadapter.Input
	var why *pregel.NodeError
	g := handled(func(_ context.Context, in graphadapter.Input, failure *pregel.NodeError) (pregel.Command, error) {
		got, why = in, failure
		return pregel.Command{Update: []pregel.Write{write("amount", "0")}, Goto: []pregel.Target{{Node: "other"}}}, nil
	})
	g.Nodes["pay"] = graphadapter.Node{Branches: []graphadapter.BranchFunc{func(context.Context, graphadapter.State) ([]pregel.Target, error) {
		panic("the failed node's branch was asked")
	}}}
	task := mendTask()
	task.Branches = []pregel.Branch{{From: "pay"}}
	out, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7"})
	if err != nil || len(out.Routes) != 0 || len(out.Update) != 1 || out.Goto[0].Node != "other" {
		t.Errorf("the handler came back with %+v, %v", out, err)
	}
	if len(got.State) != 1 || got.State["amount"].String() != "250" || why != task.Failure {
		t.Errorf("the handler was given %v and %v", got, why)
	}
}

// TestAnErrorHandlerOfASend is given its argument.
func TestAnErrorHandlerOfASend(t *testing.T) {
	task := mendTask()
	task.State, task.Arg = nil, pregel.Value("7")
	out, err := RunAttempt(t.Context(), handled(func(_ context.Context, in graphadapter.Input, _ *pregel.NodeError) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{{Channel: "amount", Value: in.Arg}}}, nil
	}), task, Env{})
	if err != nil || string(out.Update[0].Value) != "7" {
		t.Errorf("the handler came back with %+v, %v", out, err)
	}
}

// TestAnErrorHandlerIsATask: it asks, has effects, may fail and panic as any other.
func TestAnErrorHandlerIsATask(t *testing.T) {
	ask := func(ctx context.Context, _ graphadapter.Input, _ *pregel.NodeError) (pregel.Command, error) {
		task, _ := TaskFrom(ctx)
		_, err := task.Ask(ctx, pregel.Value(`"give up?"`), nil, "")
		return pregel.Command{}, err
	}
	if out, err := RunAttempt(t.Context(), handled(ask), mendTask(), Env{}); err != nil || len(out.Questions) != 1 {
		t.Errorf("a handler that asks came back with %+v, %v", out, err)
	}
	_, err := RunAttempt(t.Context(), handled(func(context.Context, graphadapter.Input, *pregel.NodeError) (pregel.Command, error) {
		panic("boom")
	}), mendTask(), Env{})
	if !is[*graphadapter.PanicError](err) {
		t.Errorf("a handler that panics came back with %v", err)
	}
}

// TestAHandlerThatIsNotHere is for another worker; a node is no handler.
func TestAHandlerThatIsNotHere(t *testing.T) {
	g := handled(nil)
	g.Nodes["other"] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) { panic("it ran") }}
	for _, node := range []string{"mend", "nobody", "other"} {
		task := mendTask()
		task.Node = node
		_, err := RunAttempt(t.Context(), g, task, Env{})
		var unserved *graphadapter.UnservedError
		if !errors.As(err, &unserved) || unserved.Node != node {
			t.Errorf("handler %q: %v", node, err)
		}
	}
}
