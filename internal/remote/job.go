package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Job returns where a job stands.
func (c *Jobs) Job(ctx context.Context, id string) (thread.JobView, error) {
	last, err := c.theLastJob(ctx, id)
	if err != nil {
		return thread.JobView{}, err
	}
	if !last.open {
		board, err := c.jobLeft(ctx, last)
		if err != nil {
			return thread.JobView{}, err
		}
		return thread.JobView{View: c.jobView(last, board.View(time.Now()))}, nil
	}
	var v job.View
	if err := c.query(ctx, last, protocol.QueryJob, &v); err != nil {
		return thread.JobView{}, err
	}
	waiting, err := c.jobQuestions(ctx, id)
	return thread.JobView{View: c.jobView(last, v), Waiting: waiting}, err
}

// jobView completes a view by what the board does not know.
func (c *Jobs) jobView(last *lastRun, v job.View) job.View {
	v.Leader = last.graph
	return v
}

// theLastJob is the newest run of a job, which must exist.
func (c *Jobs) theLastJob(ctx context.Context, id string) (*lastRun, error) {
	last, err := c.lastOf(ctx, job.WorkflowID(id), protocol.LeaderWorkflow)
	if err == nil && last == nil {
		err = &thread.Error{Kind: thread.ErrNotFound, Thread: job.WorkflowID(id), Message: "there is no job " + strconv.Quote(id),
			Do: "List the jobs there are", Command: []string{"job", "list"}}
	}
	return last, err
}

// jobLeft is the board that a job's closed run has left. One that was ended from outside left nothing, and a worker reads
// it from the run's history.
func (c *Jobs) jobLeft(ctx context.Context, last *lastRun) (*job.Board, error) {
	event, err := c.closingEvent(ctx, last)
	if err != nil {
		return nil, c.explain(err, last.graph, last.thread)
	}
	left, said, err := c.leaderResultIn(event)
	if err != nil {
		return nil, err
	}
	if said && left.Board != nil {
		return left.Board, nil
	}
	var board job.Board
	if err := c.query(ctx, last, protocol.QueryBoard, &board); err != nil {
		return nil, err
	}
	return &board, nil
}

// leaderResultIn reads the last event of a leader's run; said is false when it was not the run itself that ended it.
func (c *Jobs) leaderResultIn(event *historypb.HistoryEvent) (left protocol.LeaderResult, said bool, err error) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return left, true, c.decode(event.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &left)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		details := event.GetWorkflowExecutionCanceledEventAttributes().GetDetails()
		return left, details != nil, c.decode(details, &left)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		details := failureDetails(event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		return left, details != nil, c.decode(details, &left)
	}
	return left, false, nil
}

// refusedJob is the error of a message that a leader's run refused.
func refusedJob(workflowID string, by *temporal.ApplicationError) error {
	var refused job.RefusedError
	if !by.HasDetails() || by.Details(&refused) != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: workflowID, Message: by.Message()}
	}
	return runtime.JobRefusal("", &refused)
}

// JobAnswer waits until a job has finished and returns what it has made, whole.
func (c *Jobs) JobAnswer(ctx context.Context, id string) (thread.JobAnswer, error) {
	last, err := c.theLastJob(ctx, id)
	if err != nil {
		return thread.JobAnswer{}, err
	}
	if last.open {
		// Why a run ends is in what it leaves; a run that cannot be waited for is none that has ended.
		if err := c.awaitEnd(ctx, last); ctx.Err() != nil {
			return thread.JobAnswer{}, errors.Join(ctx.Err(), err)
		}
		if last, err = c.theLastJob(ctx, id); err != nil {
			return thread.JobAnswer{}, err
		}
		if last.open { // it was recovered at once
			return c.JobAnswer(ctx, id)
		}
	}
	board, err := c.jobLeft(ctx, last)
	if err != nil {
		return thread.JobAnswer{}, err
	}
	v := c.jobView(last, board.View(time.Now()))
	if v.Status != job.StatusFinished {
		return thread.JobAnswer{View: v}, notFinished(v)
	}
	return c.answerOf(ctx, v, board.Answer())
}

// notFinished says why a job that has ended has no answer.
func notFinished(v job.View) error {
	reason := v.Reason
	if reason == "" {
		reason = "nobody said why"
	}
	return &thread.JobError{View: v, Message: reason + ". Let it go on: superstep job recover " + v.ID}
}

// answerOf reads the parts of an answer that are stored elsewhere.
func (c *Jobs) answerOf(ctx context.Context, v job.View, parts []job.Input) (thread.JobAnswer, error) {
	for i, p := range parts {
		if p.Text != "" || p.Stored == nil {
			continue
		}
		text, err := c.storedOutput(ctx, *p.Stored)
		if err != nil {
			return thread.JobAnswer{View: v}, fmt.Errorf("job %s: the output of subjob %s: %w", v.ID, p.SubJob, err)
		}
		parts[i].Text = text
	}
	return runtime.NewAnswer(v, parts), nil
}

// storedOutput reads an output where its attempt has left it, and checks that it is the one that is meant.
func (c *Jobs) storedOutput(ctx context.Context, at job.Reference) (string, error) {
	m, err := c.storedMessage(ctx, at.Thread, at.RunID)
	if err == nil && !at.Fits(m.Output) {
		err = &thread.Error{Kind: thread.ErrNotFound, Thread: at.Thread, Message: fmt.Sprintf("run %s of thread %q holds another output than the one that is referred to",
			at.RunID, at.Thread)}
	}
	return m.Output, err
}
