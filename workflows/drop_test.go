package workflows_test

import (
	"context"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestDropForgetsADeafNode: a node that does not look at its context ends after the run was told to drop its superstep. Neither what it
// wrote nor the answer that it was given is kept, in sync and in fused sync.
func TestDropForgetsADeafNode(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]protocol.GraphInput{
		"sync": {}, "fused": {Fused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			works, release := make(chan struct{}), make(chan struct{})
			deaf := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				task, _ := taskrun.TaskFrom(ctx)
				if _, err := task.Ask(ctx, pregel.Value(`"sure?"`), nil, ""); err != nil {
					return pregel.Command{}, err
				}
				close(works)
				<-release
				return writes("log", []string{"deaf"}), nil
			}}
			r.work(graph("drop", map[string]graphadapter.Node{"deaf": deaf, "end": says("end")}, []string{"deaf", "end"},
				to(pregel.Start, "deaf"), to("deaf", "end")))
			thread := testserver.Queue(t)
			in.Graph, in.Input = "drop", input(`{}`)
			run := r.start(thread, in)
			q := r.asks(thread, 1).Questions[0]
			if _, err := r.update(thread, answer("yes", q, `"yes"`)); err != nil {
				t.Fatal(err)
			}
			<-works
			if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalCancel, protocol.CancelRequest{ID: "c", Mode: protocol.CancelDrop}); err != nil {
				t.Fatal(err)
			}
			await(t, "the cancellation", func() bool { return r.cancels(thread) }, func() any { return nil })
			close(release)
			left := closingOf(t, run.Get(r.ctx, nil))
			if left.Step != 0 {
				t.Errorf("the run left step %d", left.Step)
			}
			if open := r.asks(r.next(thread, left), 1).Questions; open[0].ID != q.ID {
				t.Errorf("the next run asks %+v, not %s", open, q.ID)
			}
		})
	}
}

// next starts the thread's next run from what the last one left, and returns the thread.
func (r *rig) next(thread string, left protocol.Closing) string {
	r.t.Helper()
	r.start(thread, next("drop", left))
	return thread
}

// cancels reports whether the activity of the thread's run was told to end.
func (r *rig) cancels(thread string) bool {
	r.t.Helper()
	d, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
	for _, a := range d.GetPendingActivities() {
		if err == nil && a.GetState().String() == "CancelRequested" {
			return true
		}
	}
	return false
}
