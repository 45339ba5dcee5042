package history

import (
	"context"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/codec"
	"superstep.dev/thread/storage"
)

// Code is the workflow code that reads a run's past: a workflows.Reader.
type Code interface {
	// Register registers the workflows.
	Register(worker.WorkflowRegistry)
	// Err returns why the code could not read the run that was replayed last, if that is what went wrong.
	Err() error
}

// Replay runs a run's recorded history through the workflow code itself, which reads what happened far better than a
// second interpretation of events could. The run may be under way: what is not durable yet is left out.
func (t *Tail) Replay(ctx context.Context, workflowID, runID string, code Code) error {
	events, err := t.All(ctx, workflowID, runID)
	if err != nil {
		return err
	}
	return t.ReplayEvents(workflowID, runID, events, code)
}

// ReplayEvents is Replay for events that were fetched already: all from the run's first on, as far as the server gave
// them. Events that do not reach its first completed workflow task tell nothing, and code is not called.
func (t *Tail) ReplayEvents(workflowID, runID string, events []*historypb.HistoryEvent, code Code) error {
	durable := events[:Durable(events)]
	if len(durable) == 0 {
		return nil
	}
	reading := storage.Reading(t.Converter) // the run's values are stored; what the replay encodes anew is compared with nothing
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: reading, FailureConverter: codec.Failures(reading),
		DisableDeadlockDetection: true, // only our own code runs, for longer than the SDK's second where the machine is slow and the state large
	})
	if err != nil {
		return err
	}
	code.Register(replayer)
	err = replayer.ReplayWorkflowHistoryWithOptions(quiet{}, &historypb.History{Events: afresh(durable)},
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: workflowID, RunID: runID}})
	if err == nil {
		return nil
	}
	if cause := code.Err(); cause != nil {
		err = cause
	}
	return fmt.Errorf("run %s of thread %s cannot be replayed: %w", runID, workflowID, err)
}

// afresh returns the events with a first one of their own: the SDK writes the memo and the search attributes that the
// workflow sets into those that the run was started with, where the next replay would find them.
func afresh(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	out := slices.Clone(events)
	out[0] = proto.CloneOf(out[0])
	return out
}

// Durable returns how many of a run's events a replay may use: those up to its last completed workflow task, and what
// that task brought about. A later task would do anew what nobody has recorded.
func Durable(events []*historypb.HistoryEvent) int {
	n := len(events)
	for n > 0 && events[n-1].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
		n--
	}
	for n > 0 && n < len(events) && commanded(events[n].GetEventType()) {
		n++
	}
	return n
}

// commanded reports whether an event is what a workflow task asked for.
func commanded(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
		enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_TIMER_CANCELED, enumspb.EVENT_TYPE_MARKER_RECORDED,
		enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
		enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}

// All returns a run's whole history as it is now.
func (t *Tail) All(ctx context.Context, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
	e := t.Events(workflowID, runID)
	for {
		if err := e.fetch(ctx, false); err != nil {
			return nil, err
		}
		if len(e.token) == 0 {
			return e.All, nil
		}
	}
}

// quiet drops the replayer's log lines: what it says is in its error.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
