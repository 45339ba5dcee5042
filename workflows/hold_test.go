package workflows_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// held waits until a thread is held open after a failure.
func (r *rig) held(thread string) protocol.State {
	r.t.Helper()
	return r.until(thread, "the failure", func(s protocol.State) bool { return s.Status == protocol.StatusFailed && s.Failure != nil })
}

// failsOnce is a graph of two nodes side by side, one that waits for an event and one that fails while broken is true.
// It tells whether the task that failed was suspect when it ran again.
func failsOnce() (g *graphadapter.Graph, broken *atomic.Bool, suspect *atomic.Bool) {
	broken, suspect = &atomic.Bool{}, &atomic.Bool{}
	broken.Store(true)
	g = waitingGraph(waitsFor(0, "paid"), graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		suspect.Store(task.Info().Suspect)
		if broken.Load() {
			return pregel.Command{}, errors.New("broken")
		}
		return writes("log", []string{"mended"}), nil
	}})
	return g, broken, suspect
}

// TestAHeldRunSurvivesItsWorkers, and being continued as a new one: what it is told while no worker is there counts, an
// event for a task of the superstep that failed is kept for it, and a pause holds up the retry.
func TestAHeldRunSurvivesItsWorkers(t *testing.T) {
	for name, at := range map[string]*protocol.ContinueAt{"one run": nil, "continued": {Events: 1, Life: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			g, broken, suspect := failsOnce()
			stop := r.work(g)
			thread := testserver.Queue(t)
			run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`), Hold: true, ContinueAt: at})
			if s := r.held(thread); s.Failure.Node != "right" || s.Failure.Message != "broken" {
				t.Errorf("it failed as %+v", s.Failure)
			}
			if at != nil {
				r.continued(thread, run.GetRunID())
				if s := r.held(thread); s.Failure.Node != "right" || s.Failure.Message != "broken" {
					t.Errorf("continued as a new one, it failed as %+v", s.Failure)
				}
			}
			stop()
			r.eventBySignal(thread, protocol.EventRequest{ID: "e", Name: "paid", Value: word("p")})
			r.pausingBySignal(thread, protocol.PauseRequest{ID: "p", By: "ann"})
			stop = r.work(g)
			r.paused(thread)
			if err := r.call(thread, protocol.UpdateRetry, "early", protocol.RetryRequest{ID: "early"}, nil); errorKind(err) != protocol.ErrTypeBusy {
				t.Errorf("a retry of a run that is paused: %v", err)
			}
			if _, err := r.pausing(thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil {
				t.Fatal(err)
			}
			if s := r.held(thread); len(s.Waits)+len(s.Kept) != 0 {
				t.Errorf("the event was not taken: %+v", s)
			}
			stop()
			broken.Store(false)
			r.work(g)
			if err := r.call(thread, protocol.UpdateRetry, "r", protocol.RetryRequest{ID: "r"}, nil); err != nil {
				t.Fatal(err)
			}
			r.logIs(r.client.GetWorkflow(r.ctx, thread, ""), `["p","mended","end"]`)
			if !suspect.Load() {
				t.Error("the task that failed is not suspect when it runs again")
			}
		})
	}
}

// TestARetryIsRefused by a run that did not fail; the same retry sent twice is one.
func TestARetryIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, broken, _ := failsOnce()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`), Hold: true})
	r.held(thread)
	if err := r.call(thread, protocol.UpdateRetry, "none", protocol.RetryRequest{}, nil); errorKind(err) != protocol.ErrTypeBadUpdate {
		t.Errorf("a retry without an id: %v", err)
	}
	broken.Store(false)
	for range 2 {
		if err := r.call(thread, protocol.UpdateRetry, "r", protocol.RetryRequest{ID: "r"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.waitsForEvents(thread, 1)
	if err := r.call(thread, protocol.UpdateRetry, "again", protocol.RetryRequest{ID: "again"}, nil); errorKind(err) != protocol.ErrTypeNotFailed {
		t.Errorf("a retry of a run that waits: %v", err)
	}
	if _, err := r.event(thread, protocol.EventRequest{ID: "e", Name: "paid", Value: word("p")}); err != nil {
		t.Fatal(err)
	}
	r.logIs(run, `["p","mended","end"]`)
}

// TestAHeldRunOutOfTimeIsRetried: the superstep's clock begins anew.
func TestAHeldRunOutOfTimeIsRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, _, release, ran := letGo()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`), Hold: true, StepTimeout: steady.Milliseconds()})
	r.until(thread, "the end of its time", func(s protocol.State) bool { return s.Status == protocol.StatusTimedOut })
	release <- struct{}{}
	if err := r.call(thread, protocol.UpdateRetry, "r", protocol.RetryRequest{ID: "r"}, nil); err != nil {
		t.Fatal(err)
	}
	r.logIs(run, `["a","b","c"]`)
	if ran.Load() != 2 {
		t.Errorf("a ran %d times", ran.Load())
	}
}
