package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
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
		page, err := f.client.service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
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
	value, err := f.client.ask(bounded, f.last.thread, f.last, protocol.QueryJobEvents, f.after)
	if err != nil {
		if err = f.client.explainQuery(err, f.last.graph, f.last.thread); unanswered(err) {
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

// Jobs returns jobs in the order of List, each with its newest run.
func (c *Jobs) Jobs(ctx context.Context, q thread.JobsQuery) ([]thread.JobItem, error) {
	return newest(ctx, c.reader, listing{protocol.LeaderWorkflow, q.Leader, q.Limit}, func(info *workflowpb.WorkflowExecutionInfo) (j thread.JobItem, of string, wanted bool) {
		j = c.jobItem(info)
		return j, j.Leader, q.Status == "" || j.Status == q.Status
	})
}

func (c *Jobs) jobItem(info *workflowpb.WorkflowExecutionInfo) thread.JobItem {
	item := thread.JobItem{ID: info.GetExecution().GetWorkflowId()[len(job.WorkflowID("")):], Leader: c.graphOf(info), Started: info.GetStartTime().AsTime()}
	if p, ok := info.GetMemo().GetFields()[memoJobGoal]; ok && c.cfg.DataConverter.FromPayload(p, &item.Goal) != nil {
		item.Goal = "" // written with another converter
	}
	if info.GetCloseTime() != nil {
		item.Ended = info.GetCloseTime().AsTime()
	}
	var status thread.Status
	attribute(info, protocol.AttributeStatus, &status)
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		item.Status, item.Waits = job.StatusRunning, status == thread.StatusWaiting
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		item.Status = job.StatusFinished
		if status == thread.StatusStopped {
			item.Status = job.StatusStopped
		}
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		item.Status = job.StatusFailed
	default: // ended from outside
		item.Status = job.StatusStopped
	}
	return item
}

// jobQuestions are the open questions of a job and of its attempts; none when the namespace does not index questions. Some servers
// ignore letter case in prefixes, so each id is compared again.
func (c *Jobs) jobQuestions(ctx context.Context, id string) ([]thread.InboxItem, error) {
	has, err := c.hasAttributes(ctx)
	if err != nil || !has.Inbox {
		return nil, err
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.cfg.Namespace, PageSize: mostInbox,
		Query: fmt.Sprintf("%s AND (WorkflowId = %s OR WorkflowId STARTS_WITH %s)", asksPeople,
			quotedInQuery(job.WorkflowID(id)), quotedInQuery(job.WorkflowID(id)+"/")),
	}
	var out []thread.InboxItem
	for asking := 0; ; {
		reply, err := c.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, c.explain(err, "", job.WorkflowID(id))
		}
		for _, info := range reply.GetExecutions() {
			if job.Of(info.GetExecution().GetWorkflowId()) == id && asking < mostInbox {
				asking++
				out = append(out, c.inboxItems(info)...)
			}
		}
		if request.NextPageToken = reply.GetNextPageToken(); len(request.NextPageToken) == 0 || asking == mostInbox {
			return out, nil
		}
	}
}
