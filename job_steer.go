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

// StopJob stops a job, and returns when all its attempts have ended: what finished until then is kept, and a recovery does
// the rest. A job that is stopped already is returned as it is. The id is the job's, or that of the thread of an attempt:
// then the job is stopped on account of that one's subjob. Without Halt.By the client's Identity is noted as who asked.
//
// Errors: [ErrNotFound] for a job or a subjob that there is not; [ErrBadInput] when the job has finished or failed, which
// changes nothing; [ErrNoWorker], [ErrNoServer].
func (c *Client) StopJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return c.haltJob(ctx, id, h, protocol.UpdateJobStop, job.StatusStopped, (*job.Board).Stop)
}

// FailJob is StopJob for a job that has failed then, with the subjob if one is named: see [job.Board.Fail]. A job that has
// failed already is returned as it is, one that was stopped is refused.
func (c *Client) FailJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return c.haltJob(ctx, id, h, protocol.UpdateJobFail, job.StatusFailed, (*job.Board).Fail)
}

func (c *Client) haltJob(ctx context.Context, id string, h job.Halt, update string, to job.Status, halt func(*job.Board, job.Halt, time.Time) error) (job.View, error) {
	if of, subjob := job.OfAttempt(id); subjob != "" {
		if h.SubJob != "" && h.SubJob != subjob {
			return job.View{}, &Error{Kind: ErrBadInput, Thread: id, Message: fmt.Sprintf("%q is an attempt of subjob %q, not of %q", id, subjob, h.SubJob)}
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

// RetrySubJob does one subjob of a running job again, with a lesson, and what depends on it. A job that has ended is
// recovered instead: [job.Recover] names subjobs to do again.
//
// Errors: [ErrNotFound] for a job or a subjob that there is not; [ErrBadInput] when the subjob cannot be done again now, or
// the job has ended; [ErrNoWorker], [ErrNoServer].
func (c *Client) RetrySubJob(ctx context.Context, id, subjob, lesson string) (job.View, error) {
	return c.steerRunning(ctx, id, protocol.UpdateJobRetry, protocol.RetrySubJob{SubJob: subjob, Lesson: lesson, By: c.cfg.Identity})
}

// DecidePlan decides on the plan that a job waits for: see [job.Decision], which names the version of the plan that was
// looked at.
//
// Errors: [ErrNotFound]; [ErrAnswerRefused] when another plan waits by now; [ErrBadInput] when none does, or for an edited
// plan that cannot be used; [ErrNoWorker], [ErrNoServer].
func (c *Client) DecidePlan(ctx context.Context, id string, d job.Decision) (job.View, error) {
	if d.By == "" {
		d.By = c.cfg.Identity
	}
	return c.steerRunning(ctx, id, protocol.UpdateJobPlan, d)
}

// ChangeExperts changes who may be assigned to what a running job plans from now on. Workers must serve the graphs of those
// that are added. One that is removed still does what it is assigned to. All of it is done, or nothing.
//
// Errors: [ErrNotFound] for a job or an expert that there is not; [ErrBadInput]; [ErrNoWorker], [ErrNoServer].
func (c *Client) ChangeExperts(ctx context.Context, id string, add []job.Profile, remove ...string) (job.View, error) {
	return c.steerRunning(ctx, id, protocol.UpdateJobExperts, protocol.ChangeExperts{Add: add, Remove: remove, By: c.cfg.Identity})
}

// RaiseBudget changes what a running job may spend: fields that are 0 stay as they are. One that waits because its budget
// is spent goes on.
//
// Errors: [ErrNotFound]; [ErrBadInput] for less than what is spent, or a job that has ended; [ErrNoWorker], [ErrNoServer].
func (c *Client) RaiseBudget(ctx context.Context, id string, b job.Budget) (job.View, error) {
	return c.steerRunning(ctx, id, protocol.UpdateJobBudget, protocol.RaiseBudget{Budget: b, By: c.cfg.Identity})
}

// LeaderExperts returns the experts of a leader as a worker of the task queue serves it. Errors: [ErrNoWorker], [ErrNoServer].
func (c *Client) LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error) {
	experts, err := c.leaderServed(ctx, leader)
	return experts, err
}

// steerRunning is steer for what a job that has ended never takes.
func (c *Client) steerRunning(ctx context.Context, id, update string, arg any) (job.View, error) {
	return c.steer(ctx, id, update, arg, func(b *job.Board, _ time.Time) error {
		return &Error{Kind: ErrBadInput, Thread: job.WorkflowID(id), Message: fmt.Sprintf("job %q is %s", id, b.Status),
			Do: "Recover it first", Command: []string{"job", "recover", id}}
	})
}

// steer tells a job something, and returns how it stands then. One that has ended is told nothing: ended says whether that
// is right.
func (c *Client) steer(ctx context.Context, id, update string, arg any, ended func(b *job.Board, now time.Time) error) (job.View, error) {
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
			return c.jobView(last, v), jobRefusal(last.graph, ended(board, now))
		}
		var v job.View
		if err = c.update(ctx, last, request, update, arg, &v); !errors.Is(err, errEnded) {
			return c.jobView(last, v), err
		}
	}
}
