package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// RecoverJob lets a job go on that was stopped or has failed.
func (c *Jobs) RecoverJob(ctx context.Context, id string, r job.Recover) (job.View, error) {
	last, err := c.endedJob(ctx, id)
	if err != nil {
		return job.View{}, err
	}
	if r.By == "" {
		r.By = c.cfg.Identity
	}
	left, err := c.jobLeft(ctx, last)
	if err == nil && !left.Status.Final() {
		err = c.abandoned(ctx, last, left)
	}
	if err != nil {
		return job.View{}, err
	}
	tried := left.Copy()
	if err := tried.Recover(r, time.Now()); err != nil {
		return job.View{}, runtime.JobRefusal(last.graph, err)
	}
	if _, err := c.LeaderExperts(ctx, last.graph); err != nil {
		return job.View{}, err
	}
	in := protocol.LeaderInput{Leader: last.graph, Job: job.Job{ID: left.Job.ID, Goal: left.Job.Goal}, Board: left, Recover: &r}
	if _, err = c.launchJob(ctx, uuid.NewString(), in, last); errors.Is(err, errStartedBefore) || errors.Is(err, thread.ErrRunning) {
		err = recoveredBefore(last, id)
	}
	return c.jobView(last, tried.View(time.Now())), err
}

func recoveredBefore(last *lastRun, id string) error {
	return &thread.Error{Kind: thread.ErrRunning, Graph: last.graph, Thread: last.thread, Do: "Look at it", Command: []string{"job", "show", id},
		Message: fmt.Sprintf("somebody else has just recovered job %q", id)}
}

// endedJob is the newest run of a job, which has ended, or ends by itself soon and is waited for.
func (c *Jobs) endedJob(ctx context.Context, id string) (*lastRun, error) {
	for {
		last, err := c.theLastJob(ctx, id)
		if err != nil || !last.open {
			return last, err
		}
		var v job.View
		if err := c.query(ctx, last, protocol.QueryJob, &v); err != nil {
			return nil, err
		}
		if ending := v.Phase == job.PhaseStopping || v.Phase == job.PhaseFailing; !ending && !v.Status.Final() {
			return nil, &thread.Error{Kind: thread.ErrRunning, Graph: last.graph, Thread: last.thread, Do: "Stop it first, or do one subjob again",
				Command: []string{"job", "stop", id}, Message: fmt.Sprintf("job %q is %s: there is nothing to recover", id, v.Standing())}
		}
		if err := c.awaitEnd(ctx, last); ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// abandoned makes the board of a run that was ended from outside one that was stopped. The attempts that it left must have
// ended: they were told to.
func (c *Jobs) abandoned(ctx context.Context, last *lastRun, b *job.Board) error {
	now, reason := time.Now(), "its run was ended from outside: "+string(statusOf(last.status))
	if err := b.Stop(job.Halt{Reason: reason, By: c.cfg.Identity}, now); err != nil {
		return runtime.JobRefusal(last.graph, err)
	}
	b.Ready(now)
	for _, s := range b.SubJobs {
		if !s.Open {
			continue
		}
		threadID := job.AttemptThread(b.Job.ID, s.ID, s.Attempts)
		run, err := c.lastRun(ctx, threadID)
		if err != nil {
			return err
		}
		if run != nil && run.open {
			return &thread.Error{Kind: thread.ErrRunning, Graph: last.graph, Thread: threadID, Do: "Wait for it, or cancel it", Command: []string{"cancel", threadID},
				Message: fmt.Sprintf("the run of job %q was %s, and attempt %d of its subjob %q still runs", b.Job.ID, statusOf(last.status), s.Attempts, s.ID)}
		}
		b.Reported(job.Attempt{SubJob: s.ID, Attempt: s.Attempts}, c.attemptMessage(ctx, run, reason), now)
	}
	b.Ready(now)
	return nil
}

// attemptMessage is what an attempt ended with whose leader was gone by then; one that did not finish has failed for the
// given reason.
func (c *Jobs) attemptMessage(ctx context.Context, run *lastRun, reason string) job.WorkflowMessage {
	if run != nil && run.status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		if m, err := c.storedMessage(ctx, run.thread, run.runID); err == nil {
			return m
		}
	}
	return job.WorkflowMessage{Status: job.ExecutionError, Evaluation: reason, Usage: job.Usage{Unknown: true}}
}
