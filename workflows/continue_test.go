package workflows_test

import (
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// always continues a run as a new one whenever that is possible.
var always = &protocol.ContinueAt{Events: 1, Life: 1}

// runs returns the runs of a thread that were continued as new ones up to the newest one, oldest first.
func (r *rig) runs(thread string) []string {
	r.t.Helper()
	d, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
	if err != nil {
		r.t.Fatal(err)
	}
	last := d.GetWorkflowExecutionInfo()
	ids := []string{last.GetExecution().GetRunId()}
	for id := last.GetFirstRunId(); id != ids[len(ids)-1]; {
		events := r.client.GetWorkflowHistory(r.ctx, thread, id, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		e, err := events.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids[:len(ids)-1], id, ids[len(ids)-1])
		id = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return ids
}

// TestContinuedSameAsMemory: a run that is continued as a new one whenever it can be comes to the same end by the same
// checkpoints as one in memory. One whose supersteps are fused can be where it waits.
func TestContinuedSameAsMemory(t *testing.T) {
	fused := slices.DeleteFunc(fusedScenarios(), func(s scenario) bool {
		return !strings.HasPrefix(s.name, "questions") && !strings.HasPrefix(s.name, "nested") && !strings.HasPrefix(s.name, "handled") &&
			!strings.HasPrefix(s.name, "metered")
	})
	for _, s := range append(fused, scenarios...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(s.graph())
			thread := testserver.Queue(t)
			s.continueAt = always
			s.sameAsMemory(r, thread)
			if n := len(r.runs(thread)); n < 2 && s.name != "retried" { // its one superstep is within the first workflow task
				t.Errorf("the thread has %d runs: it was never continued", n)
			}
		})
	}
}

// continued waits until a run was continued as a new one: it looks for that whenever something wakes it up.
func (r *rig) continued(thread, runID string) {
	r.t.Helper()
	await(r.t, "the next run", func() bool {
		r.signal(thread, protocol.ResumeRequest{Question: "junk"})
		ids := r.runs(thread)
		return ids[len(ids)-1] != runID
	}, func() any { return r.runs(thread) })
}

// TestContinueWhileWaiting: questions, what was refused and who answered what are carried; what was taken before is
// known again behind it, by the id of the request.
func TestContinueWhileWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "approval", Input: protocol.Input{Value: pregel.Value(`{}`)},
		ContinueAt: &protocol.ContinueAt{Events: 1}})
	s := r.asks(thread, 3)
	first := answer("first", questionOf(t, s, "one"), `"yes"`)
	want, err := r.update(thread, first)
	if err != nil {
		t.Fatal(err)
	}
	r.continued(thread, run.GetRunID())
	now := r.asks(thread, 2)
	if len(now.Answered) != 1 || len(now.Refused) == 0 {
		t.Errorf("behind a continue-as-new the run knows of %d answers and %d refused signals", len(now.Answered), len(now.Refused))
	}
	again, err := r.update(thread, first)
	if err != nil || again.Question != want.Question || again.Node != want.Node {
		t.Errorf("the same answer again: %+v, %v; it was %+v", again, err, want)
	}
	if _, err := r.update(thread, answer("other", questionOf(t, s, "one"), `"no"`)); errorKind(err) != protocol.ErrTypeAnswered {
		t.Errorf("another answer to the same question: %v", err)
	}
	r.answerAll(thread, run.GetRunID())
	if log := string(r.finished(r.client.GetWorkflow(r.ctx, thread, "")).Output["log"]); log == "" {
		t.Error("no log")
	}
}

// TestRepeatedRequestsBehindAContinue: a request that was taken is not taken twice, though its sender did not get the
// reply and the run that gave it is over.
func TestRepeatedRequestsBehindAContinue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(branchingGraph(toRight), chainGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "branching", Input: input(`{}`), ContinueAt: &protocol.ContinueAt{Events: 1}})
	r.stopped(thread)
	first, err := r.updateState(thread, one("u", as("router", "by hand")))
	if err != nil {
		t.Fatal(err)
	}
	r.continued(thread, run.GetRunID())
	again, err := r.updateState(thread, one("u", as("router", "by hand")))
	if err != nil || asJSON(t, again) != asJSON(t, first) {
		t.Errorf("the same update again: %+v, %v; it was %+v", again, err, first)
	}
	if log := string(r.stopped(thread).Snapshot.Values["log"]); log != `["first","by hand"]` {
		t.Errorf("the update was applied twice or not at all: %s", log)
	}
}
