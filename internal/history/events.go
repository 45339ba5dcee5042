package history

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/thread/storage"
)

// Events are a run's events as far as they have been fetched. One goroutine at a time may use it; the events handed out
// never change.
type Events struct {
	// All are the events that are stored, first to newest.
	All []*historypb.HistoryEvent

	// passing are events behind those of a workflow task that is scheduled or started. The server shows them before they
	// are stored, and may give their ids to others then: what comes next tells.
	passing           []*historypb.HistoryEvent
	tail              *Tail
	workflowID, runID string
	token             []byte
}

// Events begins to follow a run's history. runID must not be "": a thread's newest run may change between two calls.
func (t *Tail) Events(workflowID, runID string) *Events {
	return &Events{tail: t, workflowID: workflowID, runID: runID}
}

// Seen is how many events the server has shown: those of a workflow task under way are not among All before another
// event comes.
func (e *Events) Seen() int { return len(e.All) + len(e.passing) }

// Closed reports whether the run has ended and all its events are here.
func (e *Events) Closed() bool { return len(e.All) > 0 && closing(e.All[len(e.All)-1].GetEventType()) }

// More waits until the server shows events that are not here yet and fetches them. It is one long poll at the server while
// nothing happens. It returns at once when the run has ended, and with ctx's error when ctx ends first. After any error
// it may be called again.
func (e *Events) More(ctx context.Context) error {
	had, seen := len(e.All), e.Seen()
	for len(e.All) == had && e.Seen() == seen && !e.Closed() {
		if err := e.fetch(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets the next page.
func (e *Events) fetch(ctx context.Context, wait bool) error {
	page, err := e.tail.Service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: e.tail.Namespace, NextPageToken: e.token, WaitNewEvent: wait,
		Execution:              &commonpb.WorkflowExecution{WorkflowId: e.workflowID, RunId: e.runID},
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
	})
	if err != nil {
		return err
	}
	// What is read with an event is there when somebody has the event: a replay could not wait for it.
	if err := storage.Fill(ctx, e.tail.Converter, page.GetHistory()); err != nil {
		return fmt.Errorf("the history of run %s of thread %s cannot be read: %w", e.runID, e.workflowID, err)
	}
	e.token = page.GetNextPageToken()
	for _, event := range page.GetHistory().GetEvents() {
		if err := e.take(event); err != nil {
			return err
		}
	}
	if wait && len(e.token) == 0 && !e.Closed() {
		return fmt.Errorf("the history of run %s of thread %s ended without a closing event", e.runID, e.workflowID)
	}
	return nil
}

// take adds an event.
func (e *Events) take(event *historypb.HistoryEvent) error {
	place := int(event.GetEventId()) - 1 - len(e.All)
	if place < 0 {
		return nil // fetched before an error
	}
	if place > len(e.passing) {
		return fmt.Errorf("the history of run %s of thread %s has no event %d", e.runID, e.workflowID, e.Seen()+1)
	}
	e.passing = append(e.passing[:place:place], event) // what had its id was never stored
	if !mayPass(event.GetEventType()) {
		e.All, e.passing = append(e.All, e.passing...), nil
	}
	return nil
}

// mayPass reports whether the server shows events of a type before they are stored.
func mayPass(t enumspb.EventType) bool {
	return t == enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED || t == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED
}

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

// The marker with which the SDK records a local activity, and what is in its details.
const (
	localMarker = "LocalActivity"
	localData   = "data"
	localResult = "result"
)

// Local returns the type of the local activity whose end the event records, and what it returned; "" for any other event.
func Local(from converter.DataConverter, e *historypb.HistoryEvent) (kind string, result *commonpb.Payloads) {
	marker := e.GetMarkerRecordedEventAttributes()
	if marker.GetMarkerName() != localMarker {
		return "", nil
	}
	var data struct{ ActivityType string }
	if from.FromPayloads(marker.GetDetails()[localData], &data) != nil {
		return "", nil
	}
	return data.ActivityType, marker.GetDetails()[localResult]
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
