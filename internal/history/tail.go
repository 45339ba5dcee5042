// Package history reads what happened in a run from its event history: step by step while it runs, and its past
// checkpoints by replaying the workflow itself.
package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/codec"
)

// Tail follows one run's history. It long-polls: nothing is asked while nothing happens.
type Tail struct {
	Service   workflowservice.WorkflowServiceClient
	Namespace string
	Converter converter.DataConverter
}

// Step is one task of a run that ended, or with Started one that began.
type Step struct {
	Request graphadapter.NodeRequest
	// Task is pregel.Task.Key of its task.
	Task    string
	Started bool
	// Outcome is set when the task ended with one; Failure says why it ended without.
	Outcome *pregel.Outcome
	Failure string
	Attempt int32
	// Took is nanoseconds from the last attempt's start; of a task that ran beside or behind others in one activity, those
	// that it was under way there, in whole milliseconds.
	Took int64
}

// Run reads events from the beginning of the run and reports what its tasks did behind the event of the id behind, 0 for
// all of it. Branches that an update of the state from outside evaluates are none of its tasks. It returns the run's
// closing event once the run has ended, or nil when the run stands still: no task is under way, its worker has said all it
// had to say, and waits confirms it.
func (t *Tail) Run(ctx context.Context, workflowID, runID string, behind int64, on func(Step), waits func() (bool, error)) (*historypb.HistoryEvent, error) {
	f := fold{tail: t, behind: behind, on: on, tasks: map[int64]*task{}, given: map[string]bool{}}
	var token []byte
	for {
		page, err := t.Service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: t.Namespace, NextPageToken: token, WaitNewEvent: true,
			Execution:              &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
			HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
		})
		if err != nil {
			return nil, err
		}
		for _, event := range page.GetHistory().GetEvents() {
			if err := f.take(event); err != nil {
				return nil, err
			}
		}
		token = page.GetNextPageToken()
		switch {
		case f.closed != nil:
			return f.closed, nil
		case f.idle():
			if confirmed, err := waits(); err != nil || confirmed {
				return nil, err
			}
		}
		if token == nil {
			return nil, fmt.Errorf("the history of run %s ended without a closing event", runID)
		}
	}
}

// Closed waits for the last event of a run. Nothing else of its history is read.
func (t *Tail) Closed(ctx context.Context, workflowID, runID string) (*historypb.HistoryEvent, error) {
	var token []byte
	for {
		page, err := t.Service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: t.Namespace, NextPageToken: token, WaitNewEvent: true,
			Execution:              &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
			HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
		})
		if err != nil {
			return nil, err
		}
		if events := page.GetHistory().GetEvents(); len(events) > 0 {
			return events[len(events)-1], nil
		}
		if token = page.GetNextPageToken(); token == nil {
			return nil, fmt.Errorf("the history of run %s ended without a closing event", runID)
		}
	}
}

// task is an activity that was scheduled.
type task struct {
	request graphadapter.NodeRequest
	segment bool // it ran tasks of several supersteps
	update  bool // of the state, from outside
	attempt int32
	began   int64
}

// fold is what the events read so far add up to.
type fold struct {
	tail   *Tail
	behind int64
	on     func(Step)
	tasks  map[int64]*task
	given  map[string]bool // by task: an execution gave it back, to be run again
	thinks bool            // a workflow task is scheduled
	spoke  bool            // a workflow task has completed
	closed *historypb.HistoryEvent
}

func (f *fold) idle() bool { return f.spoke && !f.thinks && len(f.tasks) == 0 }

func (f *fold) take(e *historypb.HistoryEvent) error {
	switch e.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		f.thinks = true
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		f.thinks, f.spoke = false, true
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return f.scheduled(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		if known, ok := f.tasks[a.GetScheduledEventId()]; ok {
			known.attempt, known.began = a.GetAttempt(), e.GetEventTime().AsTime().UnixNano()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		known, ok := f.tasks[a.GetScheduledEventId()]
		switch {
		case !ok:
			return nil
		case known.segment:
			delete(f.tasks, a.GetScheduledEventId())
			return f.segmentEnded(e, known, a.GetResult())
		}
		var outcome pregel.Outcome
		if err := f.decode(a.GetResult(), &outcome); err != nil {
			return err
		}
		if outcome.Yielded { // the task runs again with what it has recorded
			f.given[known.request.Task.Key()] = true
			delete(f.tasks, a.GetScheduledEventId())
			return nil
		}
		f.ended(e, a.GetScheduledEventId(), Step{Outcome: &outcome})
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		if kind, returned := Local(f.tail.Converter, e); kind == segment.OpeningActivity && returned != nil {
			return f.segmentEnded(e, &task{segment: true, attempt: 1}, returned)
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		f.ended(e, a.GetScheduledEventId(), Step{Failure: codec.Message(f.tail.Converter, a.GetFailure())})
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		f.ended(e, a.GetScheduledEventId(), Step{Failure: codec.Message(f.tail.Converter, a.GetFailure())})
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		f.ended(e, e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), Step{Failure: "cancelled"})
	default:
		if closing(e.EventType) {
			f.closed = e
		}
	}
	return nil
}

func (f *fold) scheduled(e *historypb.HistoryEvent) error {
	a := e.GetActivityTaskScheduledEventAttributes()
	switch a.GetActivityType().GetName() {
	case graphadapter.NotifyActivity, graphadapter.VerifyActivity, graphadapter.ControlActivity:
		return nil // no task's: whether the run stands still, it says itself
	}
	known := &task{update: strings.HasPrefix(a.GetActivityId(), graphadapter.UpdateActivity),
		segment: a.GetActivityType().GetName() == segment.SegmentActivity}
	f.tasks[e.GetEventId()] = known
	if known.segment {
		return nil // its tasks are known when it has ended
	}
	if err := f.decode(a.GetInput(), &known.request); err != nil {
		return err
	}
	if !f.given[known.request.Task.Key()] {
		f.report(e, known, Step{Started: true})
	}
	return nil
}

// report tells of a task's step unless it is an old one.
func (f *fold) report(e *historypb.HistoryEvent, of *task, s Step) {
	if e.GetEventId() > f.behind && !of.update {
		s.Request = of.request
		if s.Task == "" {
			s.Task = of.request.Task.Key()
		}
		f.on(s)
	}
}

// segmentEnded reports the tasks that a segment ran.
func (f *fold) segmentEnded(e *historypb.HistoryEvent, known *task, returned *commonpb.Payloads) error {
	var encoded []byte
	if err := f.decode(returned, &encoded); err != nil || len(encoded) == 0 {
		return err
	}
	result, err := segment.DecodeWhole(encoded)
	if err != nil {
		return &codec.UnreadableError{Err: err}
	}
	for i := range result.Deliveries {
		d := &result.Deliveries[i]
		if d.Outcome.Yielded {
			continue
		}
		known.request.Task = pregel.Task{}
		known.request.Task.Step, known.request.Task.Node = d.Place()
		f.report(e, known, Step{Task: d.Key, Outcome: &d.Outcome, Attempt: known.attempt, Took: d.Took * int64(time.Millisecond)})
	}
	return nil
}

func (f *fold) ended(e *historypb.HistoryEvent, scheduled int64, s Step) {
	known, ok := f.tasks[scheduled]
	if !ok {
		return
	}
	delete(f.tasks, scheduled)
	if known.segment {
		return // what it stored is delivered by the workflow, of which this event says nothing
	}
	s.Attempt = known.attempt
	if known.began > 0 {
		s.Took = e.GetEventTime().AsTime().UnixNano() - known.began
	}
	f.report(e, known, s)
}

func (f *fold) decode(payloads *commonpb.Payloads, into any) error {
	if err := f.tail.Converter.FromPayloads(payloads, into); err != nil {
		return &codec.UnreadableError{Err: err}
	}
	return nil
}

// closing reports whether an event is a run's last.
func closing(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}
