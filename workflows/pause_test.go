package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// pausing sends a pause, or takes it back, by update.
func (r *rig) pausing(thread string, req protocol.PauseRequest) (reply protocol.PauseReply, err error) {
	err = r.call(thread, protocol.UpdatePause, req.ID, req, &reply)
	return reply, err
}

// pausingBySignal does the same without a reply.
func (r *rig) pausingBySignal(thread string, req protocol.PauseRequest) {
	r.t.Helper()
	if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalPause, req); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) paused(thread string) protocol.State {
	r.t.Helper()
	return r.until(thread, "the pause", func(s protocol.State) bool { return s.Status == protocol.StatusPaused })
}

// letGo is a chain whose first node waits to be let go.
func letGo() (g *graphadapter.Graph, began, release chan struct{}, ran *atomic.Int32) {
	began, release, ran = make(chan struct{}, 10), make(chan struct{}, 10), &atomic.Int32{}
	g = chainGraph()
	g.Nodes["a"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		ran.Add(1)
		began <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return writes("log", []string{"a"}), context.Cause(ctx)
	}}
	return g, began, release, ran
}

// TestAPauseSurvivesItsWorkers: asked for while no worker is there, it holds the run for every later one, and so does
// taking it back. A request that comes late, after the one that took it back, changes nothing.
func TestAPauseSurvivesItsWorkers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, ran := chainGraph(), &atomic.Int32{}
	g.Nodes["a"] = counting(ran, "a", func(ctx context.Context) error {
		<-activity.GetWorkerStopChannel(ctx) // else the worker might go on with b before it stops
		return nil
	})
	stop := r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`)})
	await(t, "the node in its activity", func() bool {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		return err == nil && len(described.GetPendingActivities()) == 1 &&
			described.GetPendingActivities()[0].GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
	}, func() any { return ran.Load() })
	stop() // it waits for the node
	r.pausingBySignal(thread, protocol.PauseRequest{ID: "p", By: "ann", Reason: "the books are closed"})
	stop = r.work(g)
	s := r.paused(thread)
	if s.Paused.By != "ann" || s.Paused.Reason != "the books are closed" || s.Paused.At.IsZero() {
		t.Errorf("paused, it says %+v", s.Paused)
	}
	stop()
	r.pausingBySignal(thread, protocol.PauseRequest{ID: "u", Unpause: true})
	r.pausingBySignal(thread, protocol.PauseRequest{ID: "p", By: "ann", Reason: "late"})
	r.work(g)
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` || ran.Load() != 1 {
		t.Errorf("it ended with %s after %d runs of a", log, ran.Load())
	}
}

// TestARepeatedPauseIsOne, by update and by signal; the first who paused is named.
func TestARepeatedPauseIsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "approval", Input: input(`{}`)})
	r.asks(thread, 3)
	first, err := r.pausing(thread, protocol.PauseRequest{ID: "p1", By: "ann"})
	if err != nil || !first.Changed {
		t.Fatalf("pausing: %+v, %v", first, err)
	}
	r.pausingBySignal(thread, protocol.PauseRequest{ID: "p1", By: "ann"})
	again, err := r.pausing(thread, protocol.PauseRequest{ID: "p2", By: "bob"})
	if err != nil || again.Changed || again.Paused.By != "ann" {
		t.Errorf("pausing twice: %+v, %v", again, err)
	}
	s := r.paused(thread)
	for i, q := range s.Questions {
		value := pregel.Value(fmt.Sprintf("%q", "yes to "+q.Node))
		if _, err := r.update(thread, protocol.ResumeRequest{ID: fmt.Sprint(i), Question: q.ID, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.paused(thread); len(s.Questions) != 0 || len(s.Answered) != 3 {
		t.Errorf("answered while it is paused, it is %+v", s)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "i", Input: input(`{}`)}); errorKind(err) != protocol.ErrTypeBusy ||
		!strings.Contains(err.Error(), "paused by ann") {
		t.Errorf("new input for a paused run: %v", err)
	}
	if _, err := r.updateState(thread, one("s", as("one", "x"))); errorKind(err) != protocol.ErrTypeBusy {
		t.Errorf("an update that would lose answers: %v", err)
	}
	if reply, err := r.pausing(thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil || !reply.Changed || reply.Paused != nil {
		t.Errorf("unpausing: %+v, %v", reply, err)
	}
	r.answerAll(thread, run.GetRunID())
	r.finished(run)
}

// TestAPausesRequestIsBounded.
func TestAPausesRequestIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	r.start(thread, protocol.GraphInput{Graph: "approval", Input: input(`{}`)})
	r.asks(thread, 3)
	long := strings.Repeat("x", 2000)
	for _, req := range []protocol.PauseRequest{{}, {ID: long}, {ID: "i", By: long}, {ID: "i", Reason: long}} {
		if req.ID != long { // which the server refuses itself
			if err := r.call(thread, protocol.UpdatePause, "u"+req.By[:min(3, len(req.By))]+req.ID, req, nil); errorKind(err) != protocol.ErrTypeBadUpdate {
				t.Errorf("a request that is too large: %v", err)
			}
		}
		r.pausingBySignal(thread, req)
	}
	s := r.until(thread, "the refusals", func(s protocol.State) bool { return len(s.Refused) == 4 })
	if s.Status != protocol.StatusWaiting || s.Paused != nil {
		t.Errorf("junk paused the run: %+v", s)
	}
}

// TestAPauseStopsTheStepTimeout: the time that a run is paused is not its superstep's.
func TestAPauseStopsTheStepTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := fanOutGraph()
	began, release := make(chan struct{}), make(chan struct{})
	g.Nodes["left"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		close(began)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return writes("log", []string{"left"}), context.Cause(ctx)
	}}
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: g.Spec.Name, Input: input(`{}`), MaxConcurrency: 1, StepTimeout: patience.Milliseconds()})
	<-began
	if _, err := r.pausing(thread, protocol.PauseRequest{ID: "p"}); err != nil {
		t.Fatal(err)
	}
	close(release)
	r.paused(thread)
	canceled := func() bool {
		events := r.client.GetWorkflowHistory(r.ctx, thread, run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.GetTimerFiredEventAttributes() != nil {
				t.Fatal("the step timeout fired")
			}
			if e.GetTimerCanceledEventAttributes() != nil {
				return true
			}
		}
		return false
	}
	await(t, "the end of the timer", canceled, func() any { return nil })
	if _, err := r.pausing(thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil {
		t.Fatal(err)
	}
	r.finished(run)
}
