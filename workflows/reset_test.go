package workflows_test

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestAResetKeepsAnswers: the server brings what was sent to a run once more when it resets the run, before the run asks again. Answers by
// update and by signal are kept for their questions, and nobody is asked twice.
func TestAResetKeepsAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(graph("twice", map[string]graphadapter.Node{"asker": asking("asker", "first?", "second?")}, []string{"asker"}, to(pregel.Start, "asker")))
	for how, give := range map[string]func(thread string, req protocol.ResumeRequest) error{
		"update": func(thread string, req protocol.ResumeRequest) error { _, err := r.update(thread, req); return err },
		"signal": func(thread string, req protocol.ResumeRequest) error { r.signal(thread, req); return nil },
	} {
		thread := testserver.Queue(t) + "-" + how
		r.start(thread, protocol.GraphInput{Graph: "twice", Input: input(`{}`)})
		first := r.asks(thread, 1).Questions[0]
		if err := give(thread, answer("a-"+how, first, `"one"`)); err != nil {
			t.Fatal(err)
		}
		second := r.until(thread, "the second question", func(s protocol.State) bool {
			return len(s.Questions) == 1 && s.Questions[0].ID != first.ID
		}).Questions[0]
		reset := r.resetToFirstTask(thread)
		s := r.until(thread, "the second question of the reset run", func(s protocol.State) bool {
			return len(s.Questions) == 1 && s.Questions[0].ID == second.ID
		})
		if len(s.Refused) != 0 || len(s.Answered) != 1 || s.Answered[0].Question != first.ID {
			t.Errorf("%s: behind the reset it has answered %+v, and refused %+v", how, s.Answered, s.Refused)
		}
		if _, err := r.update(thread, answer("b-"+how, second, `"two"`)); err != nil {
			t.Fatal(err)
		}
		r.logIs(r.client.GetWorkflow(r.ctx, thread, reset), `["asker","\"one\"","\"two\""]`)
	}
}

// resetToFirstTask resets a thread's run to the end of its first workflow task, and returns the run that follows.
func (r *rig) resetToFirstTask(thread string) string {
	r.t.Helper()
	events := r.client.GetWorkflowHistory(r.ctx, thread, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if e.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		reply, err := r.client.ResetWorkflowExecution(r.ctx, &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: thread}, Reason: "a test",
			WorkflowTaskFinishEventId: e.GetEventId(), RequestId: thread})
		if err != nil {
			r.t.Fatal(err)
		}
		return reply.GetRunId()
	}
	r.t.Fatal("the run has no workflow task")
	return ""
}
