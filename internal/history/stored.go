package history

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// sideEffectMarker and sideEffectValue are how the SDK names what workflow.SideEffect stores.
	sideEffectMarker = "SideEffect"
	sideEffectValue  = "data"
	// lastEvents are as many as hold what a run stores before it closes: two values of up to 2 MiB.
	lastEvents = 8
)

// MissingError says that a run's history does not have what was to be stored right before its end.
type MissingError struct{ Thread, Run string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the history of run %s of thread %s does not hold what the run was to store before its end", e.Run, e.Thread)
}

// Stored hands out the values that a closed run stored in its last workflow task, the newest first, until take says that it
// has the one it looks for. It returns a *[MissingError] when take never does.
func (t *Tail) Stored(ctx context.Context, workflowID, runID string, take func(*commonpb.Payloads) (bool, error)) error {
	var token []byte
	for {
		page, err := t.Service.GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: t.Namespace, NextPageToken: token, MaximumPageSize: lastEvents,
			Execution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
		})
		if err != nil {
			return err
		}
		found, more, err := storedIn(page.GetHistory().GetEvents(), take)
		if err != nil || found {
			return err
		}
		if token = page.GetNextPageToken(); !more || token == nil {
			return &MissingError{Thread: workflowID, Run: runID}
		}
	}
}

// storedIn looks at events of a run's end; more is false once they are of an earlier workflow task.
func storedIn(events []*historypb.HistoryEvent, take func(*commonpb.Payloads) (bool, error)) (found, more bool, err error) {
	for _, e := range events {
		if e.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return false, false, nil
		}
		marker := e.GetMarkerRecordedEventAttributes()
		if marker.GetMarkerName() != sideEffectMarker {
			continue
		}
		if found, err := take(marker.GetDetails()[sideEffectValue]); found || err != nil {
			return found, false, err
		}
	}
	return false, true, nil
}
