package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// StopJob stops a job, and returns when all its attempts have ended.
func (c *Jobs) StopJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return c.haltJob(ctx, id, h, protocol.UpdateJobStop, job.StatusStopped, (*job.Board).Stop)
}

// FailJob is StopJob for a job that has failed then, with the subjob if one is named.
func (c *Jobs) FailJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return c.haltJob(ctx, id, h, protocol.UpdateJobFail, job.StatusFailed, (*job.Board).Fail)
}

func (c *Jobs) haltJob(ctx context.Context, id string, h job.Halt, update string, to job.Status, halt func(*job.Board, job.Halt, time.Time) error) (job.View, error) {
	if of, subjob := job.OfAttempt(id); subjob != "" {
		if h.SubJob != "" && h.SubJob != subjob {
			return job.View{}, &thread.Error{Kind: thread.ErrBadInput, Thread: id, Message: fmt.Sprintf("%q is an attempt of subjob %q, not of %q", id, subjob, h.SubJob)}
		}
		id, h.SubJob = of, subjob
	}
	h.By = cmp.Or(h.By, c.cfg.Identity)
	return c.steer(ctx, id, update, h, func(b *job.Board, now time.Time) error {
		if b.Status == to {
			return nil
		}
		return halt(b, h, now)
	})
}

// RetrySubJob does one subjob of a running job again, with a lesson, and what depends on it.
func (c *Jobs) RetrySubJob(ctx context.Context, id, subjob, lesson string) (job.View, error) {
	return c.steerRunning(ctx, id, protocol.UpdateJobRetry, protocol.RetrySubJob{SubJob: subjob, Lesson: lesson, By: c.cfg.Identity})
}

// DecidePlan decides on the plan that a job waits for.
func (c *Jobs) DecidePlan(ctx context.Context, id string, d job.Decision) (job.View, error) {
	if d.By == "" {
		d.By = c.cfg.Identity
	}
	return c.steerRunning(ctx, id, protocol.UpdateJobPlan, d)
}

// ChangeExperts changes who may be assigned to what a running job plans from now on.
func (c *Jobs) ChangeExperts(ctx context.Context, id string, add []job.Profile, remove ...string) (job.View, error) {
	return c.steerRunning(ctx, id, protocol.UpdateJobExperts, protocol.ChangeExperts{Add: add, Remove: remove, By: c.cfg.Identity})
}

// RaiseBudget changes what a running job may spend.
func (c *Jobs) RaiseBudget(ctx context.Context, id string, b job.Budget) (job.View, error) {
	return c.steerRunning(ctx, id, protocol.UpdateJobBudget, protocol.RaiseBudget{Budget: b, By: c.cfg.Identity})
}

// steerRunning is steer for what a job that has ended never takes.
func (c *Jobs) steerRunning(ctx context.Context, id, update string, arg any) (job.View, error) {
	return c.steer(ctx, id, update, arg, func(b *job.Board, _ time.Time) error {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: job.WorkflowID(id), Message: fmt.Sprintf("job %q is %s", id, b.Status),
			Do: "Recover it first", Command: []string{"job", "recover", id}}
	})
}

// steer tells a job something, and returns how it stands then. One that has ended is told nothing: ended says whether that
// is right.
func (c *Jobs) steer(ctx context.Context, id, update string, arg any, ended func(b *job.Board, now time.Time) error) (job.View, error) {
	request := uuid.NewString()
	for {
		last, err := c.theLastJob(ctx, id)
		if err != nil {
			return job.View{}, err
		}
		if !last.open {
			board, err := c.jobLeft(ctx, last)
			if err != nil {
				return job.View{}, err
			}
			now := time.Now()
			v := board.View(now)
			return c.jobView(last, v), runtime.JobRefusal(last.graph, ended(board, now))
		}
		var v job.View
		if err = c.update(ctx, last, request, update, arg, &v); !errors.Is(err, errEnded) {
			return c.jobView(last, v), err
		}
	}
}
