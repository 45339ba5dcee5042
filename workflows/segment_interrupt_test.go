package workflows_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/nexttask"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// orphan is a run whose segment lost its worker in the second of three supersteps. What the segment had stored is there
// in fused and async mode, and nobody works for the run.
type orphan struct {
	*rig
	graph  *graphadapter.Graph
	thread string
	run    client.WorkflowRun
	// first counts how often the first node ran; second is told when the second one runs again, which then waits.
	first         *atomic.Int32
	again, onward chan struct{}
}

func orphaned(t *testing.T, mode string, at *protocol.ContinueAt) *orphan {
	t.Helper()
	o := &orphan{rig: newRig(t), graph: chainGraph(), thread: testserver.Queue(t), first: &atomic.Int32{},
		again: make(chan struct{}, 10), onward: make(chan struct{})}
	began, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	o.graph.Nodes["a"] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		o.first.Add(1)
		return writes("log", []string{"a"}), nil
	}}
	var lost atomic.Bool
	o.graph.Nodes["b"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		if !lost.Swap(true) {
			close(began)
			<-release
			return pregel.Command{}, nil
		}
		o.again <- struct{}{}
		select {
		case <-o.onward:
		case <-ctx.Done():
		}
		return writes("log", []string{"b"}), context.Cause(ctx)
	}}
	gone := newRig(t) // a worker with a client of its own, which it loses
	gone.queue = o.queue
	stop := gone.workAs(o.graph, worker.Options{WorkerStopTimeout: time.Millisecond})
	in := fusedModes[mode]
	in.Graph, in.Input, in.ContinueAt = "chain", input(`{}`), at
	o.run = o.start(o.thread, in)
	<-began
	if mode == "async" {
		o.stored(o.thread)
	} else { // its opening may have the segment
		o.pending(o.thread, "the segment's activity", func(attempts []int32) bool { return len(attempts) == 1 })
	}
	stop()
	gone.client.Close()
	o.pending(o.thread, "the segment waits for a worker", func(attempts []int32) bool {
		return len(attempts) == 1 && attempts[0] > 1
	})
	return o
}

// workflowsOnly starts a worker for workflows alone: the segment stays where it is.
func (o *orphan) workflowsOnly() (stop func()) {
	return o.workAs(o.graph, worker.Options{LocalActivityWorkerOnly: true})
}

// isCancelled waits until the server has cancelled the segment that nobody has.
func (o *orphan) isCancelled() {
	o.t.Helper()
	o.pending(o.thread, "the segment is cancelled", func(attempts []int32) bool { return len(attempts) == 0 || attempts[0] == 1 })
}

// TestASegmentWithoutAWorkerIsInterrupted: the server cancels an activity between two attempts at once, and forgets what
// it stored. What had run before does not run again.
func TestASegmentWithoutAWorkerIsInterrupted(t *testing.T) {
	for _, name := range []string{"fused", "async"} {
		for how, interrupt := range map[string]func(*orphan) client.WorkflowRun{
			"cancel": func(o *orphan) client.WorkflowRun {
				if err := o.client.CancelWorkflow(o.ctx, o.thread, ""); err != nil {
					o.t.Fatal(err)
				}
				in := next("chain", closingOf(o.t, o.run.Get(o.ctx, nil)))
				in.Fused, in.Durability = fusedModes[name].Fused, fusedModes[name].Durability
				in.Suspect = true
				o.work(o.graph)
				return o.start(o.thread, in)
			},
			"drain": func(o *orphan) client.WorkflowRun {
				if err := o.call(o.thread, protocol.UpdateDrain, "d", protocol.DrainRequest{ID: "d", Reason: "a deploy"}, nil); err != nil {
					o.t.Fatal(err)
				}
				o.isCancelled()
				o.work(o.graph)
				o.stopped(o.thread)
				if err := o.invoke(o.thread, protocol.InvokeRequest{ID: "on"}); err != nil {
					o.t.Fatal(err)
				}
				return o.run
			},
			"pause": func(o *orphan) client.WorkflowRun {
				if _, err := o.pausing(o.thread, protocol.PauseRequest{ID: "p"}); err != nil {
					o.t.Fatal(err)
				}
				s := o.paused(o.thread)
				if log := string(s.Snapshot.Values["log"]); log != `["a"]` || strings.Join(s.Snapshot.Next, " ") != "b" {
					o.t.Errorf("paused, its log is %s and next comes %v", log, s.Snapshot.Next)
				}
				o.work(o.graph)
				if _, err := o.pausing(o.thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil {
					o.t.Fatal(err)
				}
				return o.run
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				o := orphaned(t, name, nil)
				close(o.onward)
				o.workflowsOnly()
				run := interrupt(o)
				if log := string(o.finished(run).Output["log"]); log != `["a","b","c"]` || o.first.Load() != 1 {
					t.Errorf("it ended with %s, and its first node ran %d times", log, o.first.Load())
				}
			})
		}
	}
}

// TestAPauseOfASegmentSurvivesItsWorkers: its worker is lost, the pause is stored while there is none, and the next worker
// takes both over. The superstep under way ends, the one behind it does not begin, and so it stays when that worker is
// lost too and the run is continued as a new one.
func TestAPauseOfASegmentSurvivesItsWorkers(t *testing.T) {
	for mode := range fusedModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := orphaned(t, mode, always)
			o.pausingBySignal(o.thread, protocol.PauseRequest{ID: "p", By: "ann"})
			stopNodes := o.workAs(o.graph, worker.Options{DisableWorkflowWorker: true})
			<-o.again // else the segment, which nobody has, would be cancelled at once
			stop := o.work(o.graph)
			o.hears(o.thread)
			close(o.onward)
			s := o.paused(o.thread)
			if log := string(s.Snapshot.Values["log"]); log != `["a","b"]` || strings.Join(s.Snapshot.Next, " ") != "c" || s.Paused.By != "ann" {
				t.Errorf("paused by %q, its log is %s and next comes %v", s.Paused.By, log, s.Snapshot.Next)
			}
			ran := o.first.Load()
			if want := map[string]int32{"exit": 2}[mode]; ran != max(want, 1) {
				t.Errorf("the first node ran %d times", ran)
			}
			stopNodes()
			stop()
			o.work(o.graph)
			o.continued(o.thread, o.run.GetRunID())
			o.paused(o.thread)
			if _, err := o.pausing(o.thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil {
				t.Fatal(err)
			}
			o.logIs(o.client.GetWorkflow(o.ctx, o.thread, ""), `["a","b","c"]`)
			if o.first.Load() != ran {
				t.Error("what was done before the pause ran again")
			}
		})
	}
}

// hears waits until the segment under way has heard that it is to leave.
func (r *rig) hears(thread string) {
	r.t.Helper()
	var asked time.Time
	await(r.t, "the segment's next heartbeat", func() bool {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		if err != nil || len(described.GetPendingActivities()) != 1 {
			return false
		}
		pending := described.GetPendingActivities()[0]
		if asked.IsZero() && pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED {
			asked = time.Now()
		}
		return !asked.IsZero() && pending.GetLastHeartbeatTime().AsTime().After(asked)
	}, func() any { return asked })
}

// workAs starts a worker with options of its own.
func (r *rig) workAs(g *graphadapter.Graph, options worker.Options) (stop func()) {
	r.t.Helper()
	options.Identity, options.StickyScheduleToStartTimeout, options.DeadlockDetectionTimeout = "test", time.Second, raced
	w := worker.New(r.client, r.queue, options)
	graphs := []*graphadapter.Graph{g}
	inputs := activities.NewInputs(0, r.replaying(g))
	if !options.DisableWorkflowWorker {
		workflows.NewGraphs(graphs, workflows.Config{Values: inputs, LostAfter: steady, NextTask: nexttask.Want}).Register(w)
	}
	activities.NewNodes(r.client, graphs).WithInputs(inputs).WithNextTask(func() bool { return r.follows }).Register(w)
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
