package segment

import (
	"context"
	"errors"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// TestAnOutcomeThatNobodyCouldReadFailsItsNode: values, emissions and results that are nested as deep as readers go, or
// nearly. The segment ends as any other in which a node failed.
func TestAnOutcomeThatNobodyCouldReadFailsItsNode(t *testing.T) {
	for _, depth := range []int{9950, 9997} {
		deep := pregel.Value(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		for what, node := range map[string]graphadapter.NodeFunc{
			"a value": func(context.Context, graphadapter.Input) (pregel.Command, error) {
				return pregel.Command{Update: []pregel.Write{{Channel: "left", Value: deep}}}, nil
			},
			"an emission": func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				task, _ := taskrun.TaskFrom(ctx)
				return pregel.Command{}, task.Emit(deep)
			},
			"a result": func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				task, _ := taskrun.TaskFrom(ctx)
				_, err := task.Memo(ctx, "deep", "", func(context.Context) (pregel.Value, error) { return deep, nil })
				return pregel.Command{}, errors.Join(err, graphadapter.Permanent(errors.New("and then this")))
			},
		} {
			g := countdown(3, node)
			r := newFusedRun(t, g, graphadapter.DurabilitySync, input(`{}`))
			result, err := RunSegment(t.Context(), g, r.suspended(), Host{})
			if err != nil {
				t.Fatal(err)
			}
			r.take(result)
			var failure *pregel.NodeError
			if !errors.As(r.loop.Err(), &failure) || failure.Node != "tick" || failure.Type != "InvalidUpdateError" {
				t.Errorf("%s of depth %d: the run ended with %v", what, depth, r.loop.Err())
			}
		}
	}
}

// owning is a task that owns the key of a thread-wide call of that name.
func owning(name string) (task *pregel.Task, key string) {
	key = ledger.Hash("thread-wide", "r-7", string(ledger.KindTask), name, "k")[:ledger.KeyLength]
	task = payTask()
	task.Kept = map[string]pregel.Value{key: pregel.Null}
	return task, key
}

// TestATaskThatIsStoppedBetweenAttemptsKeepsItsKeys: what it did under them is the thread's, however the task ends.
func TestATaskThatIsStoppedBetweenAttemptsKeepsItsKeys(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	task, key := owning("once")
	g := &graphadapter.Graph{Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "pays", Nodes: []pregel.NodeSpec{{Name: task.Node}},
		Edges: []pregel.Edge{{From: pregel.Start, To: task.Node}}},
		Nodes: map[string]graphadapter.Node{task.Node: {Retry: []graphadapter.RetryPolicy{{}}, Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			run, _ := taskrun.TaskFrom(ctx)
			_, err := run.ThreadMemo(ctx, "once", "k", func(context.Context) (pregel.Value, error) { return pregel.Value(`1`), nil })
			return pregel.Command{}, errors.Join(err, errors.New("come again"))
		}}}}
	outbox, err := taskrun.OpenOutbox(task, nil, store{&Segment{req: &Request{}, host: Host{Keep: func(context.Context) error { cancel(); return nil }}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := taskrun.RunTask(ctx, g, task, taskrun.Env{Thread: "r-7", Outbox: outbox})
	if out.Error == nil || out.Error.Type != pregel.CancelledType || out.Kept[key] == nil {
		t.Errorf("it ended with %+v and keeps %v", out.Error, out.Kept)
	}
}

// TestATaskThatIsGivenBackKeepsItsKeys: what a lost execution did under them is the thread's before the task runs again. It
// may never: the superstep can be dropped.
func TestATaskThatIsGivenBackKeepsItsKeys(t *testing.T) {
	r := newFusedRun(t, countdown(3, nil), graphadapter.DurabilitySync, input(`{}`))
	r.loop.Deliver(r.ready[0], pregel.Outcome{Yielded: true, Claim: "k"})
	r.ready = r.loop.Ready()
	left, err := graphadapter.EncodeLedger([]ledger.Entry{{Key: "k", Name: "once", Kind: ledger.KindEffect, State: ledger.StateCommitted,
		Attempts: 1, ThreadWide: true, Result: pregel.Value(`1`)}})
	if err != nil {
		t.Fatal(err)
	}
	r.take(Result{Left: map[string]pregel.Value{r.ready[0].Key(): left}})
	if kept, ok := r.loop.Thread().Kept("k"); !ok || !strings.Contains(string(kept), `"committed"`) {
		t.Errorf("the thread keeps %s", kept)
	}
}
