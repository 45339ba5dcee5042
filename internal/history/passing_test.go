package history_test

import (
	"context"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
)

// TestEventsOfPassingWorkflowTasks: the server shows the events of a workflow task that is being repeated before they are
// stored, under ids that other events may get. Who follows the run sees what is stored, in the end.
func TestEventsOfPassingWorkflowTasks(t *testing.T) {
	t.Parallel()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	service, queue := c.WorkflowService(), testserver.Queue(t)
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "passing")
	if err != nil {
		t.Fatal(err)
	}
	poll, err := service.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: "default",
		TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = service.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
		Namespace: "default", TaskToken: poll.GetTaskToken(), Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED}); err != nil {
		t.Fatal(err)
	}
	tail := history.Tail{Service: service, Namespace: "default"}
	events := tail.Events(queue, run.GetRunID())
	if err := events.More(ctx); err != nil {
		t.Fatal(err)
	}
	shown := shownOf(t, c, queue, run.GetRunID())
	if last := shown[len(shown)-1]; last.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED {
		t.Fatalf("the server shows %v: no workflow task is being repeated", kinds(shown))
	}
	if err := c.SignalWorkflow(ctx, queue, run.GetRunID(), "resume", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.TerminateWorkflow(ctx, queue, run.GetRunID(), "enough"); err != nil {
		t.Fatal(err)
	}
	for !events.Closed() {
		if err := events.More(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if stored := shownOf(t, c, queue, run.GetRunID()); !slices.Equal(kinds(events.All), kinds(stored)) {
		t.Fatalf("followed, the run has\n%v\nstored are\n%v", kinds(events.All), kinds(stored))
	}
}

func shownOf(t *testing.T, c client.Client, id, run string) (all []*historypb.HistoryEvent) {
	t.Helper()
	for i := c.GetWorkflowHistory(t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
		e, err := i.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func kinds(events []*historypb.HistoryEvent) (out []string) {
	for _, e := range events {
		out = append(out, e.GetEventType().String())
	}
	return out
}
