package history

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Events are a run's events as far as they have been fetched. One goroutine at a time may use it; the events handed out
// never change.
type Events struct {
	// All are the events, first to newest.
	All []*historypb.HistoryEvent

	tail              *Tail
	workflowID, runID string
	token             []byte
}

// Events begins to follow a run's history. runID must not be "": a thread's newest run may change between two calls.
func (t *Tail) Events(workflowID, runID string) *Events {
	return &Events{tail: t, workflowID: workflowID, runID: runID}
}

// Closed reports whether the run has ended and all its events are here.
func (e *Events) Closed() bool { return len(e.All) > 0 && closing(e.All[len(e.All)-1].GetEventType()) }

// More waits until the run has events that are not here yet and fetches them. It is one long poll at the server while
// nothing happens. It returns at once when the run has ended, and with ctx's error when ctx ends first. After any error
// it may be called again.
func (e *Events) More(ctx context.Context) error {
	had := len(e.All)
	for len(e.All) == had && !e.Closed() {
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
	e.token = page.GetNextPageToken()
	for _, event := range page.GetHistory().GetEvents() {
		if event.GetEventId() <= int64(len(e.All)) {
			continue // fetched before an error
		}
		if event.GetEventId() != int64(len(e.All))+1 {
			return fmt.Errorf("the history of run %s of thread %s has no event %d", e.runID, e.workflowID, len(e.All)+1)
		}
		e.All = append(e.All, event)
	}
	if wait && len(e.token) == 0 && !e.Closed() {
		return fmt.Errorf("the history of run %s of thread %s ended without a closing event", e.runID, e.workflowID)
	}
	return nil
}
