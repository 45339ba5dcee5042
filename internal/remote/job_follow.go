package remote

import (
	"context"
	"errors"
	"iter"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// FollowJob returns what happens to a job behind the event of a number, 0 for all that is still kept.
func (c *Jobs) FollowJob(ctx context.Context, id string, after int64) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		last, err := c.theLastJob(ctx, id)
		if err != nil {
			yield(job.Event{}, err)
			return
		}
		f := jobFollower{client: c, last: last, after: after, yield: yield}
		if err := f.run(ctx); err != nil && !f.over {
			yield(job.Event{}, err)
		}
	}
}

// jobFollower follows one job's run, and those that it is continued as.
type jobFollower struct {
	client *Jobs
	last   *lastRun
	after  int64
	yield  func(job.Event, error) bool
	over   bool // the caller wants no more
}

func (f *jobFollower) run(ctx context.Context) error {
	for !f.over {
		closed, err := f.tail(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return f.client.explain(err, f.last.graph, f.last.thread)
		case f.over:
			return nil
		}
		next := closed.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if next == "" {
			return f.leave(ctx)
		}
		f.last.runID = next
	}
	return nil
}

// tail reports the events of one run of the workflow until it has closed, and returns its last event.
func (f *jobFollower) tail(ctx context.Context) (*historypb.HistoryEvent, error) {
	var token []byte
	for {
		page, err := f.client.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: f.client.cfg.Namespace, NextPageToken: token, WaitNewEvent: true,
			Execution:              &commonpb.WorkflowExecution{WorkflowId: f.last.thread, RunId: f.last.runID},
			HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
		})
		if err != nil {
			return nil, err
		}
		token = page.GetNextPageToken()
		events := page.GetHistory().GetEvents()
		if token == nil {
			if len(events) == 0 {
				return nil, errors.New("the history of a job's run ended without a closing event")
			}
			return events[len(events)-1], nil
		}
		if thought(events) {
			if err := f.ask(ctx); err != nil || f.over {
				return nil, err
			}
		}
	}
}

// thought reports whether the leader has done something: everything that happens to a job happens then.
func thought(events []*historypb.HistoryEvent) bool {
	for _, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return true
		}
	}
	return false
}

// ask reports what the run has to tell by now. Without a worker nothing happens either, so that nothing is lost by asking
// again when something does.
func (f *jobFollower) ask(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	value, err := f.client.temporal.QueryWorkflow(bounded, f.last.thread, f.last.runID, protocol.QueryJobEvents, f.after)
	if err != nil {
		if err = f.client.explainQuery(err, f.last.graph, f.last.thread, f.last.queue); errors.Is(err, thread.ErrNoWorker) {
			return nil
		}
		return err
	}
	var events []job.Event
	if err := value.Get(&events); err != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: f.last.thread, Message: "a worker's reply cannot be read", Cause: err}
	}
	f.report(events)
	return nil
}

// leave reports what is left to tell once the job's run has ended.
func (f *jobFollower) leave(ctx context.Context) error {
	board, err := f.client.jobLeft(ctx, f.last)
	if err == nil {
		f.report(board.EventsAfter(f.after))
	}
	return err
}

func (f *jobFollower) report(events []job.Event) {
	for _, e := range events {
		if f.over || e.Seq <= f.after {
			continue
		}
		f.after = e.Seq
		f.over = !f.yield(e, nil)
	}
}
