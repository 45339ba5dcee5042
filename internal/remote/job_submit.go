package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/internal/clip"
	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// SubmitJob begins a job.
func (c *Jobs) SubmitJob(ctx context.Context, r thread.SubmitJob) (job.View, error) {
	r.Job.ID, r.RequestID = cmp.Or(r.Job.ID, thread.NewID(r.Leader)), cmp.Or(r.RequestID, uuid.NewString())
	if len(r.RequestID) > thread.MaxID {
		return job.View{}, &thread.Error{Kind: thread.ErrBadInput, Graph: r.Leader,
			Message: fmt.Sprintf("a request's id has at most %d bytes, this one has %d", thread.MaxID, len(r.RequestID))}
	}
	experts, err := c.LeaderExperts(ctx, r.Leader)
	if err != nil {
		return job.View{}, err
	}
	board, err := job.New(r.Job, experts, time.Now())
	if err != nil {
		return job.View{}, runtime.JobRefusal(r.Leader, err)
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
func (c *Jobs) submittedBefore(ctx context.Context, r thread.SubmitJob) (job.View, error) {
	last, err := c.theLastJob(ctx, r.Job.ID)
	if err != nil {
		return job.View{}, err
	}
	if c.callOf(last.described) == r.RequestID {
		v, err := c.Job(ctx, r.Job.ID)
		return v.View, err
	}
	e := &thread.Error{Kind: thread.ErrRunning, Graph: r.Leader, Thread: last.thread, Do: "Look at it, or take another id",
		Command: []string{"job", "show", r.Job.ID}, Message: fmt.Sprintf("there is a job %q already, and it runs", r.Job.ID)}
	if !last.open {
		e.Kind = thread.ErrBadInput
		e.Message = fmt.Sprintf("there is a job %q already: its last run is %s", r.Job.ID, statusOf(last.status))
		if board, err := c.jobLeft(ctx, last); err == nil {
			e.Message = fmt.Sprintf("there is a job %q already, and it is %s", r.Job.ID, board.Status)
		}
	}
	return job.View{}, e
}

// LeaderExperts asks a worker for the experts of a leader.
func (c *Jobs) LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error) {
	var reply protocol.AdmitReply
	for range admitTries {
		if err := c.askDesk(ctx, protocol.AdmitRequest{Leader: leader}, &reply); err != nil {
			return nil, err
		}
		if reply.Known {
			return reply.Experts, nil
		}
	}
	return nil, &thread.Error{Kind: thread.ErrNoWorker, Graph: leader, Message: fmt.Sprintf("no worker on task queue %q serves the leader %q; it serves %s",
		c.cfg.TaskQueue, leader, orNone(reply.Leaders)), Do: "Check the name, or start a worker with that leader"}
}

// errStartedBefore says that a run was not started, as there is another one.
var errStartedBefore = errors.New("it was started before")

// memoJobGoal is the memo field with the beginning of a job's goal, for lists.
const memoJobGoal = "superstep_goal"

// goalShown bounds what a list shows of a goal, in bytes.
const goalShown = 200

// launchJob starts a run of a leader: of a new job, or of one that goes on behind its last run. It fails with
// errStartedBefore when another run is there first. Its request id follows from that of the run before, as a thread's does,
// so that of several recoveries only one begins.
func (c *Jobs) launchJob(ctx context.Context, call string, in protocol.LeaderInput, last *lastRun) (*lastRun, error) {
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	id := job.WorkflowID(in.Job.ID)
	memo, err := c.memoOf(in.Leader, map[string]string{protocol.MemoGraph: in.Leader, protocol.MemoStart: call,
		memoJobGoal: clip.Text(in.Job.Goal, goalShown)})
	if err != nil {
		return nil, err
	}
	start, err := c.executionRequest(id, protocol.LeaderWorkflow, in, memo, last)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: in.Leader, Thread: id, Message: "the job cannot be encoded", Cause: err}
	}
	if has.Lists {
		start.SearchAttributes = runAttributes(in.Leader)
	}
	if err := c.stillLast(ctx, last); err != nil {
		return nil, err
	}
	run, err := c.execute(ctx, start, call, last != nil)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return nil, fmt.Errorf("job %s: %w", in.Job.ID, errStartedBefore)
	}
	if err != nil {
		return nil, c.explain(err, in.Leader, id)
	}
	return &lastRun{kind: protocol.LeaderWorkflow, thread: id, graph: in.Leader, runID: run, first: run, open: true}, nil
}
