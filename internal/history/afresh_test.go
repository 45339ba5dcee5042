package history_test

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/internal/history"
)

// noting is a workflow that notes something in its memo unless it is there already.
type noting struct{}

func (noting) Err() error { return nil }

func (noting) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		if _, there := workflow.GetInfo(ctx).Memo.GetFields()["note"]; !there {
			if err := workflow.UpsertMemo(ctx, map[string]any{"note": 1}); err != nil {
				return err
			}
		}
		return workflow.Await(ctx, func() bool { return false })
	}, workflow.RegisterOptions{Name: "noting"})
}

// TestReplaysLeaveEventsAlone: a tail replays the same events again and again, and each replay begins as the run did.
func TestReplaysLeaveEventsAlone(t *testing.T) {
	value, err := converter.GetDefaultDataConverter().ToPayload(1)
	if err != nil {
		t.Fatal(err)
	}
	memo := func(name string) *commonpb.Memo {
		return &commonpb.Memo{Fields: map[string]*commonpb.Payload{name: value}}
	}
	events := []*historypb.HistoryEvent{
		{EventId: 1, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: "noting"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}, Memo: memo("spec")}}},
		{EventId: 2, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
				WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{}}},
		{EventId: 3, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
				WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: 2}}},
		{EventId: 4, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
				WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: 2, StartedEventId: 3}}},
		{EventId: 5, EventType: enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
			Attributes: &historypb.HistoryEvent_WorkflowPropertiesModifiedEventAttributes{
				WorkflowPropertiesModifiedEventAttributes: &historypb.WorkflowPropertiesModifiedEventAttributes{
					WorkflowTaskCompletedEventId: 4, UpsertedMemo: memo("note")}}},
	}
	tail := history.Tail{Converter: converter.GetDefaultDataConverter()}
	for n := range 3 {
		if err := tail.ReplayEvents("w", "r", events, noting{}); err != nil {
			t.Fatalf("replay %d: %v", n+1, err)
		}
	}
}
