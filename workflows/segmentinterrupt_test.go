package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
)

// TestASegmentWithoutAWorkerIsInterrupted: the server cancels an activity between two attempts at once, and forgets what
// it stored. What had run before does not run again.
func TestASegmentWithoutAWorkerIsInterrupted(t *testing.T) {
	for _, name := range []string{"fused", "async"} {
		for _, how := range []string{"cancel", "drain"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				var first atomic.Int32
				var blocked atomic.Bool
				g := chainGraph()
				g.Nodes["a"] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
					first.Add(1)
					return writes("log", []string{"a"}), nil
				}}
				began, release := make(chan struct{}), make(chan struct{})
				t.Cleanup(func() { close(release) })
				g.Nodes["b"] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
					if !blocked.Swap(true) {
						close(began)
						<-release
					}
					return writes("log", []string{"b"}), nil
				}}
				lost := newRig(t) // a worker with a client of its own, which it loses
				lost.queue = r.queue
				stop := lost.workAs(g, worker.Options{WorkerStopTimeout: time.Millisecond})
				thread := testserver.Queue(t)
				in := fusedModes[name]
				in.Graph, in.Input = "chain", input(`{}`)
				run := r.start(thread, in)
				<-began
				if name == "async" {
					r.stored(thread)
				}
				stop()
				lost.client.Close()
				r.pending(thread, "the segment waits for a worker", func(attempts []int32) bool {
					return len(attempts) == 1 && attempts[0] > 1
				})
				// A worker for workflows alone: the segment stays where it is.
				r.workAs(g, worker.Options{LocalActivityWorkerOnly: true})
				if how == "cancel" {
					if err := r.client.CancelWorkflow(r.ctx, thread, ""); err != nil {
						t.Fatal(err)
					}
					in = next("chain", closingOf(t, run.Get(r.ctx, nil)))
					in.Segments, in.Fused, in.Durability = true, fusedModes[name].Fused, fusedModes[name].Durability
					in.Suspect = true
					r.work(g)
					run = r.start(thread, in)
				} else {
					if err := r.call(thread, workflows.UpdateDrain, "d", workflows.DrainRequest{ID: "d", Reason: "a deploy"}, nil); err != nil {
						t.Fatal(err)
					}
					r.pending(thread, "the segment is cancelled", func(attempts []int32) bool {
						return len(attempts) == 0 || attempts[0] == 1
					})
					r.work(g)
					r.stopped(thread)
					if err := r.invoke(thread, workflows.InvokeRequest{ID: "on"}); err != nil {
						t.Fatal(err)
					}
				}
				if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` || first.Load() != 1 {
					t.Errorf("it ended with %s, and its first node ran %d times", log, first.Load())
				}
			})
		}
	}
}

// workAs starts a worker with options of its own.
func (r *rig) workAs(g *graphadapter.Graph, options worker.Options) (stop func()) {
	r.t.Helper()
	options.Identity, options.StickyScheduleToStartTimeout = "test", time.Second
	w := worker.New(r.client, r.queue, options)
	graphs := []*graphadapter.Graph{g}
	inputs := activities.NewInputs(0, r.replaying(g))
	workflows.NewGraphs(graphs, nil).Telling(inputs).Register(w)
	activities.NewNodes(r.client, graphs).WithInputs(inputs).Register(w)
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	running := true
	stop = func() {
		if running {
			running = false
			w.Stop()
		}
	}
	r.t.Cleanup(stop)
	return stop
}

// pending waits until the attempts of a run's pending activities are as wanted.
func (r *rig) pending(thread, what string, wanted func(attempts []int32) bool) {
	r.t.Helper()
	var attempts []int32
	await(r.t, what, func() bool {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		if err != nil {
			return false
		}
		attempts = nil
		for _, a := range described.GetPendingActivities() {
			attempts = append(attempts, a.GetAttempt())
		}
		return wanted(attempts)
	}, func() any { return attempts })
}

// stored waits until a run's segment has stored something.
func (r *rig) stored(thread string) {
	r.t.Helper()
	await(r.t, "the record", func() bool {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		return err == nil && len(described.GetPendingActivities()) == 1 &&
			described.GetPendingActivities()[0].GetHeartbeatDetails() != nil
	}, func() any { return nil })
}
