package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// SubmitJob begins a job. A worker of the leader checks it first; nothing is started when it does not fit.
//
// Errors: [ErrBadInput], also when there is a job of that id already; [ErrRunning] when that one runs; [ErrNoWorker] when
// no worker of the task queue serves the leader; [ErrNoServer].
func (c *Client) SubmitJob(ctx context.Context, r SubmitJob) (job.View, error) {
	r.Job.ID, r.RequestID = cmp.Or(r.Job.ID, NewThreadID(r.Leader)), cmp.Or(r.RequestID, uuid.NewString())
	if len(r.RequestID) > maxThreadID {
		return job.View{}, &Error{Kind: ErrBadInput, Graph: r.Leader,
			Message: fmt.Sprintf("a request's id has at most %d bytes, this one has %d", maxThreadID, len(r.RequestID))}
	}
	experts, err := c.leaderServed(ctx, r.Leader)
	if err != nil {
		return job.View{}, err
	}
	board, err := job.New(r.Job, experts, time.Now())
	if err != nil {
		return job.View{}, jobRefusal(r.Leader, err)
	}
	in := protocol.LeaderInput{Leader: r.Leader, Job: r.Job}
	last, err := c.launchJob(ctx, r.RequestID, in, nil)
	if errors.Is(err, errStartedBefore) {
		return c.submittedBefore(ctx, r)
	}
	if err != nil {
		return job.View{}, err
	}
	return c.jobView(last, board.View(time.Now())), nil
}

// submittedBefore is the view of a job that this very request began, or why there cannot be another one of its id.
func (c *Client) submittedBefore(ctx context.Context, r SubmitJob) (job.View, error) {
	last, err := c.theLastJob(ctx, r.Job.ID)
	if err != nil {
		return job.View{}, err
	}
	if c.callOf(last.described) == r.RequestID {
		v, err := c.Job(ctx, r.Job.ID)
		return v.View, err
	}
	e := &Error{Kind: ErrRunning, Graph: r.Leader, Thread: last.thread, Do: "Look at it, or take another id",
		Command: []string{"job", "show", r.Job.ID}, Message: fmt.Sprintf("there is a job %q already, and it runs", r.Job.ID)}
	if !last.open {
		e.Kind = ErrBadInput
		e.Message = fmt.Sprintf("there is a job %q already: its last run is %s", r.Job.ID, statusOf(last.status))
		if board, err := c.jobLeft(ctx, last); err == nil {
			e.Message = fmt.Sprintf("there is a job %q already, and it is %s", r.Job.ID, board.Status)
		}
	}
	return job.View{}, e
}

// leaderServed asks a worker for the experts of a leader.
func (c *Client) leaderServed(ctx context.Context, leader string) ([]job.Profile, error) {
	var reply protocol.AdmitReply
	for range admitTries {
		if err := c.askDesk(ctx, protocol.AdmitRequest{Leader: leader}, &reply); err != nil {
			return nil, err
		}
		if reply.Known {
			return reply.Experts, nil
		}
	}
	return nil, &Error{Kind: ErrNoWorker, Graph: leader, Message: fmt.Sprintf("no worker on task queue %q serves the leader %q; it serves %s",
		c.cfg.TaskQueue, leader, orNone(reply.Leaders)), Do: "Check the name, or start a worker with that leader"}
}
