package taskrun

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// guardedRun is a graph whose node "risky" fails for good into the handler "mend".
func guardedRun(risky graphadapter.Node, mend graphadapter.HandlerFunc) *graphadapter.Graph {
	g := sideBySide(map[string]graphadapter.Node{"risky": risky})
	g.Spec.Nodes[0].ErrorHandler = "mend"
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "mend", Handler: true}, pregel.NodeSpec{Name: "after"})
	g.Nodes["mend"] = graphadapter.Node{Handle: mend}
	g.Nodes["after"] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) { return said("after"), nil }}
	return g
}

// TestAHandlerRunsWhenThePolicyGivesUp, once, and says where to go.
func TestAHandlerRunsWhenThePolicyGivesUp(t *testing.T) {
	var attempts, handled int
	var why *pregel.NodeError
	risky := graphadapter.Node{Retry: []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, MaxAttempts: 2}},
		Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			attempts++
			return said("half"), &declinedError{5}
		}}
	g := guardedRun(risky, func(_ context.Context, _ graphadapter.Input, failure *pregel.NodeError) (pregel.Command, error) {
		handled++
		why = failure
		command := said("mended")
		command.Goto = []pregel.Target{{Node: "after"}}
		return command, nil
	})
	result, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{})
	if err != nil || string(result.Output["log"]) != `["mended","after"]` || attempts != 2 || handled != 1 {
		t.Errorf("after %d attempts and %d handlings the run ended with %+v, %v", attempts, handled, result, err)
	}
	if why == nil || why.Type != "declinedError" || why.Node != "risky" {
		t.Errorf("the handler was told %+v", why)
	}
}

// TestAHandlersOwnPolicyRepeatsIt; the node that failed does not run again, also when the handler fails for good and the
// thread is continued.
func TestAHandlersOwnPolicyRepeatsIt(t *testing.T) {
	var ran, handled int
	g := guardedRun(graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		ran++
		return pregel.Command{}, errors.New("no")
	}}, func(context.Context, graphadapter.Input, *pregel.NodeError) (pregel.Command, error) {
		if handled++; handled < 4 {
			return pregel.Command{}, errors.New("not yet")
		}
		return said("mended"), nil
	})
	mend := g.Nodes["mend"]
	mend.Retry = []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, MaxAttempts: 3}}
	g.Nodes["mend"] = mend
	thread := NewMemory().Thread(g, "r-7")
	var why *pregel.NodeError
	if _, err := thread.Run(t.Context(), input(`{}`), graphadapter.RunOptions{}); !errors.As(err, &why) || why.Node != "mend" {
		t.Fatalf("the run ended with %v", err)
	}
	if log := mustRun(t, thread, pregel.Input{}, graphadapter.RunOptions{}); log != `["mended"]` || ran != 1 || handled != 4 {
		t.Errorf("continued, it ended with %s; the node ran %d times, the handler %d", log, ran, handled)
	}
}

// TestWhatIsStoppedIsNotHandled: a cancelled run and a superstep out of time are no failures of the node, which runs
// again.
func TestWhatIsStoppedIsNotHandled(t *testing.T) {
	for _, opts := range []graphadapter.RunOptions{{}, {StepTimeout: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			var ran atomic.Int32
			g := guardedRun(graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				if ran.Add(1) > 1 {
					return said("done"), nil
				}
				<-ctx.Done()
				return pregel.Command{}, ctx.Err()
			}}, func(context.Context, graphadapter.Input, *pregel.NodeError) (pregel.Command, error) {
				return said("handled"), nil
			})
			thread := NewMemory().Thread(g, "r-7")
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := thread.Run(ctx, input(`{}`), opts)
			if !errors.Is(err, context.DeadlineExceeded) && !is[*graphadapter.StepTimeoutError](err) {
				t.Fatalf("the run ended with %v", err)
			}
			if log := mustRun(t, thread, pregel.Input{}, opts); log != `["done"]` || ran.Load() != 2 {
				t.Errorf("continued, it ended with %s after %d runs of the node", log, ran.Load())
			}
		})
	}
}
