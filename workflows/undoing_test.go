package workflows_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/worker"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/serving"
	"superstep.dev/workflows/protocol"
)

// undoingGraph pays twice, once so that it cannot be undone, pays again in the next superstep, and then hangs.
func undoingGraph() *graphadapter.Graph {
	calls := func(name, key string) graphadapter.NodeFunc {
		return func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			task, _ := taskrun.TaskFrom(ctx)
			_, err := task.Effect(ctx, name, pregel.Value(`1`), graphadapter.CallOptions{Key: key})
			return writes("log", []string{key}), err
		}
	}
	g := graph("undoing", map[string]graphadapter.Node{
		"pay": {Run: calls("bank.pay", "first")}, "fix": {Run: calls("bank.fixed", "fixed")},
		"hang": {Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			if _, err := calls("bank.pay", "second")(ctx, in); err != nil {
				return pregel.Command{}, err
			}
			<-ctx.Done()
			return pregel.Command{}, context.Cause(ctx)
		}},
	}, []string{"pay", "fix", "hang"}, to(pregel.Start, "pay"), to("pay", "fix"), to("fix", "hang"))
	done := func(context.Context, string, pregel.Value) (pregel.Value, error) { return pregel.Value(`"paid"`), nil }
	undo := func(context.Context, string, json.RawMessage, json.RawMessage) error { return nil }
	g.Effects = map[string]graphadapter.Effect{
		"bank.pay":   {Name: "bank.pay", Target: ledger.TargetNone, Do: done, Compensate: undo},
		"bank.fixed": {Name: "bank.fixed", Target: ledger.TargetNone, Do: done},
	}
	return g
}

// TestRecordCancellations records runs that were cancelled with tasks under way, and with effects.
func TestRecordCancellations(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	for name, mode := range map[string]protocol.CancelMode{"dropped": protocol.CancelDrop, "compensated": protocol.CancelCompensate} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			left := r.cancelHanging(name, mode)
			if left.Cancel == nil || mode == protocol.CancelCompensate && (left.Cancel.Undone != 2 || len(left.Cancel.Left) != 1) {
				t.Fatalf("it was cancelled as %+v", left.Cancel)
			}
			r.record(name, name)
		})
	}
}

// cancelHanging runs a thread of undoingGraph, cancels it when it hangs, and answers what it asks then.
func (r *rig) cancelHanging(thread string, mode protocol.CancelMode) protocol.Closing {
	r.t.Helper()
	r.undoes(undoingGraph())
	run := r.start(thread, protocol.GraphInput{Graph: "undoing", Input: input(`{}`)})
	await(r.t, "the effect", func() bool {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		return err == nil && len(described.GetPendingActivities()) == 1 && strings.Contains(described.String(), "undoing.hang") &&
			strings.Contains(described.String(), "committed")
	}, func() any { return nil })
	err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalCancel, protocol.CancelRequest{ID: "c", Mode: mode, By: "ann"})
	if err == nil {
		err = r.client.CancelWorkflow(r.ctx, thread, "")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if mode == protocol.CancelCompensate {
		r.signal(thread, protocol.ResumeRequest{ID: "l", Question: r.asks(thread, 1).Questions[0].ID, Value: pregel.Value(`"leave"`), By: "ann"})
	}
	return closingOf(r.t, run.Get(r.ctx, nil))
}

// undoes starts a worker that can undo effects.
func (r *rig) undoes(g *graphadapter.Graph) {
	r.t.Helper()
	w := worker.New(r.client, r.queue, worker.Options{Identity: "test", StickyScheduleToStartTimeout: time.Second, DeadlockDetectionTimeout: raced})
	serving.Register(w, r.client, serving.Config{Graphs: []*graphadapter.Graph{g}})
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(w.Stop)
}
