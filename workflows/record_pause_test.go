package workflows_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"superstep.dev/workflows/protocol"
)

// TestRecordPauses records runs that were paused, held after a failure, waited for events, or were continued as new ones,
// in every mode.
func TestRecordPauses(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	for mode, in := range allModes() {
		g, began, release, _ := letGo()
		recordLife(t, "paused"+mode, g, in, func(r *rig, run client.WorkflowRun) {
			<-began
			r.pausingBySignal(run.GetID(), protocol.PauseRequest{ID: "p", By: "ann"})
			if mode != "" {
				r.hears(run.GetID())
			}
			release <- struct{}{}
			r.paused(run.GetID())
			r.unpause(run.GetID())
			r.finished(run)
		})
		recordLife(t, "paused-drained"+mode, asksOnce(), in, func(r *rig, run client.WorkflowRun) {
			r.drainedWhilePaused(run.GetID())
			r.unpause(run.GetID())
			r.stopped(run.GetID())
			if err := r.invoke(run.GetID(), protocol.InvokeRequest{ID: "on"}); err != nil {
				t.Fatal(err)
			}
			r.finished(run)
		})
		hold := in
		hold.Hold = true
		recordLife(t, "held"+mode, failingGraph(), hold, func(r *rig, run client.WorkflowRun) {
			r.held(run.GetID())
			if err := r.call(run.GetID(), protocol.UpdateRetry, "r", protocol.RetryRequest{ID: "r"}, nil); err != nil {
				t.Fatal(err)
			}
			r.finished(run)
		})
		recordLife(t, "event"+mode, waitingGraph(waitsFor(time.Hour, "paid", "sent"), says("right")), in, func(r *rig, run client.WorkflowRun) {
			r.waitsForEvents(run.GetID(), 1)
			for _, name := range []string{"sent", "paid"} {
				if _, err := r.event(run.GetID(), protocol.EventRequest{ID: name, Name: name, Value: word(name)}); err != nil {
					t.Fatal(err)
				}
			}
			r.finished(run)
		})
	}
}

// TestRecordContinued records both runs of a thread that was continued as a new one: while it waited, with an answer
// behind it and another signal refused; and paused in the middle of its supersteps.
func TestRecordContinued(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	recordLife(t, "continues", approvalGraph(), protocol.GraphInput{ContinueAt: &protocol.ContinueAt{Events: 1}}, func(r *rig, run client.WorkflowRun) {
		s := r.asks("continues", 3)
		if _, err := r.update("continues", answer("first", questionOf(t, s, "one"), `"yes"`)); err != nil {
			t.Fatal(err)
		}
		r.continued("continues", run.GetRunID())
		r.recordRun("continues", run.GetRunID(), "continued")
		r.asks("continues", 2)
		r.answerAll("continues", run.GetRunID())
	})
	for mode, in := range fusedModes {
		g, began, release, _ := letGo()
		in.ContinueAt = always
		name := "continues-paused-" + mode
		recordLife(t, name, g, in, func(r *rig, run client.WorkflowRun) {
			<-began
			if _, err := r.pausing(name, protocol.PauseRequest{ID: "p"}); err != nil {
				t.Fatal(err)
			}
			r.hears(name)
			release <- struct{}{}
			r.paused(name)
			r.continued(name, run.GetRunID())
			r.recordRun(name, run.GetRunID(), "continued-paused-"+mode)
			r.unpause(name)
			r.logIs(r.client.GetWorkflow(r.ctx, name, ""), `["a","b","c"]`)
		})
	}
}

func (r *rig) unpause(thread string) {
	r.t.Helper()
	if _, err := r.pausing(thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil {
		r.t.Fatal(err)
	}
}
