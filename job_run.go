package superstep

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// Job returns where a job stands. Nothing is changed by looking: a job is finished by its leader, not by its readers. While
// it is under way a worker is asked.
//
// Errors: [ErrNotFound], [ErrNoWorker], [ErrNoServer].
func (c *Client) Job(ctx context.Context, id string) (JobView, error) {
	last, err := c.theLastJob(ctx, id)
	if err != nil {
		return JobView{}, err
	}
	if !last.open {
		board, err := c.jobLeft(ctx, last)
		if err != nil {
			return JobView{}, err
		}
		return JobView{View: c.jobView(last, board.View(time.Now()))}, nil
	}
	var v job.View
	if err := c.query(ctx, last, protocol.QueryJob, &v); err != nil {
		return JobView{}, err
	}
	waiting, err := c.jobQuestions(ctx, id)
	return JobView{View: c.jobView(last, v), Waiting: waiting}, err
}

// jobView completes a view by what the board does not know.
func (c *Client) jobView(last *lastRun, v job.View) job.View {
	v.Leader = last.graph
	return v
}

// theLastJob is the newest run of a job, which must exist.
func (c *Client) theLastJob(ctx context.Context, id string) (*lastRun, error) {
	last, err := c.lastOf(ctx, job.WorkflowID(id), protocol.LeaderWorkflow)
	if err == nil && last == nil {
		err = &Error{Kind: ErrNotFound, Thread: job.WorkflowID(id), Message: "there is no job " + quote(id),
			Do: "List the jobs there are", Command: []string{"job", "list"}}
	}
	return last, err
}

// jobLeft is the board that a job's closed run has left. One that was ended from outside left nothing, and a worker reads
// it from the run's history.
func (c *Client) jobLeft(ctx context.Context, last *lastRun) (*job.Board, error) {
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
func (c *Client) leaderResultIn(event *historypb.HistoryEvent) (left protocol.LeaderResult, said bool, err error) {
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

// jobRefusal is the error of a call that a board refused.
func jobRefusal(leader string, err error) error {
	var refused *job.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	e := &Error{Kind: ErrBadInput, Graph: leader, Thread: job.WorkflowID(refused.Job), Message: "nothing was changed", Cause: refused}
	switch refused.Code {
	case "unknown_subjob", "unknown_expert":
		e.Kind = ErrNotFound
	case "wrong_plan_version":
		e.Kind = ErrAnswerRefused
	case "not_recoverable":
		e.Kind = ErrNotFailed
	}
	if refused.Code != "bad_job" {
		e.Command = []string{"job", "show", refused.Job}
		if refused.Do == "" {
			e.Do = "Look at it"
		}
	}
	return e
}

// refusedJob is the error of a message that a leader's run refused.
func refusedJob(workflowID string, by *temporal.ApplicationError) error {
	var refused job.RefusedError
	if !by.HasDetails() || by.Details(&refused) != nil {
		return &Error{Kind: ErrBadInput, Thread: workflowID, Message: by.Message()}
	}
	return jobRefusal("", &refused)
}
