package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
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
		e := &thread.Error{Kind: thread.ErrBadInput, Thread: job.WorkflowID(id), Message: fmt.Sprintf("job %q is %s", id, b.Status),
			Do: "Recover it first", Command: []string{"job", "recover", id}}
		if b.Status == job.StatusFinished { // which is not recovered
			e.Do, e.Command = "See what it has made", []string{"job", "answer", id}
		}
		return e
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
		err = c.stillRuns(ctx, last, left)
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
	in := protocol.LeaderInput{Leader: last.graph, Job: job.Job{ID: left.Job.ID, Goal: left.Job.Goal}, Board: left, Recover: &r, Trace: tracing.Carried(ctx)}
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

// stillRuns says which attempt a run that was ended from outside has left: it was told to end.
func (c *Jobs) stillRuns(ctx context.Context, last *lastRun, b *job.Board) error {
	runs, err := c.abandoned(ctx, last, b, "")
	if err != nil || runs == nil {
		return err
	}
	return &thread.Error{Kind: thread.ErrRunning, Graph: last.graph, Thread: runs.thread, Do: "Wait for it, or cancel it", Command: []string{"cancel", runs.thread},
		Message: fmt.Sprintf("the run of job %q was %s, and an attempt of it still runs", b.Job.ID, statusOf(last.status))}
}

// abandoned makes the board of a run that was ended from outside one that was stopped, why is what the server says of that. It returns an
// attempt that still runs, nil when all have ended.
func (c *Jobs) abandoned(ctx context.Context, last *lastRun, b *job.Board, why string) (runs *lastRun, err error) {
	now, reason := time.Now(), "its run was ended from outside: "+string(statusOf(last.status))
	if why != "" {
		reason += ", " + clip.Line(why)
	}
	if b.Ending == "" {
		if err := b.Stop(job.Halt{Reason: reason}, now); err != nil {
			return nil, runtime.JobRefusal(last.graph, err)
		}
	}
	b.Ready(now)
	for _, s := range b.SubJobs {
		if !s.Open {
			continue
		}
		threadID := job.AttemptThread(b.Job.ID, s.ID, s.Attempts)
		run, err := c.lastRun(ctx, threadID)
		if err != nil {
			return nil, err
		}
		if run != nil && run.open {
			runs = run
			continue
		}
		b.Reported(job.Attempt{SubJob: s.ID, Attempt: s.Attempts}, c.attemptMessage(ctx, run, reason), now)
	}
	b.Ready(now)
	return runs, nil
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

// notOfAJob refuses to begin a run under an id that is a job's or an attempt's, or to give it new input: an attempt's work is its
// leader's to have done again, which would do it a second time, and a thread under a job's id would keep the job from its id.
func (c *Threads) notOfAJob(ctx context.Context, graph, id string) error {
	if !strings.HasPrefix(id, job.WorkflowID("")) {
		return nil
	}
	e := &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: id,
		Message: idsOfJobs, Do: "Take another id"}
	if of, subjob := job.OfAttempt(id); subjob != "" {
		e.Message = fmt.Sprintf("%q is an attempt of job %q, and the job's leader alone begins its runs and gives them input", id, of)
		e.Do, e.Command = (&Jobs{c.reader}).doAgain(ctx, of, subjob)
	}
	return e
}

// idsOfJobs says which ids no thread of anybody else has.
var idsOfJobs = fmt.Sprintf("thread ids that start with %q are those of jobs and their attempts", job.WorkflowID(""))

// doAgain is how a subjob is done again, as the job stands.
func (c *Jobs) doAgain(ctx context.Context, id, subjob string) (do string, command []string) {
	do, command = "Look at the job", []string{"job", "show", id}
	last, err := c.lastOf(ctx, job.WorkflowID(id), protocol.LeaderWorkflow)
	if err != nil || last == nil {
		return do, command
	}
	if last.open {
		return "Have the subjob done again", []string{"job", "retry", id, subjob}
	}
	if board, err := c.jobLeft(ctx, last); err == nil && board.Status != job.StatusFinished {
		return "Let the job go on", []string{"job", "recover", id}
	}
	return do, command
}

// checkStart refuses a request for a run that cannot be meant, also what one gives an id that is a job's or an attempt's. Answers are
// an open attempt's to take.
func checkStart(ctx context.Context, c *Threads, req runtime.Start) error {
	if err := runtime.CheckStart(req); err != nil {
		return err
	}
	if req.Resume != nil && req.Input == nil && req.Checkpoint == "" {
		return nil
	}
	return c.notOfAJob(ctx, req.Graph, req.Thread)
}
