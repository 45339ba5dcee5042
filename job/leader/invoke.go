package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// Option shapes one [Leader.Invoke].
type Option interface{ applyJob(*jobRunner) }

type jobOption func(*jobRunner)

func (o jobOption) applyJob(r *jobRunner) { o(r) }

// WithExpertAnswers answers the questions that experts ask in a [Leader.Invoke]. It is called by several goroutines at once.
// An error of it ends the job.
func WithExpertAnswers(answer func(context.Context, job.Assignment, thread.Question) (any, error)) Option {
	return jobOption(func(r *jobRunner) { r.answer = answer })
}

// WithPlanDecisions decides on the plans that wait for approval in a [Leader.Invoke]: View.Proposed is the plan. An error of
// it ends the job.
func WithPlanDecisions(decide func(context.Context, job.View) (job.Decision, error)) Option {
	return jobOption(func(r *jobRunner) { r.decide = decide })
}

// Invoke carries out a job in this process and returns its answer. Nothing is kept: it is for tests, and for jobs that need
// no durability. The rules are those of a worker, of the same model; only the planner's errors of transport are not tried
// again. The end of ctx stops the job, or with a *[Failure] as its cause fails it. A job without an ID gets
// one.
//
// Errors: [thread.ErrBadInput] for a job that cannot be carried out; a *[thread.JobError] when it fails, is stopped, or waits for what no
// option gives: an answer to an expert, a decision on a plan, a larger budget.
func (l *Leader) Invoke(ctx context.Context, j job.Job, opts ...Option) (thread.JobAnswer, error) {
	j.ID = cmp.Or(j.ID, thread.NewID(l.name))
	board, err := job.New(j, l.Experts(), time.Now())
	if err != nil {
		return thread.JobAnswer{}, runtime.JobRefusal(l.name, err)
	}
	r := &jobRunner{leader: l, board: board, memory: superstep.NewMemory(), happened: make(chan func(now time.Time)),
		attempts: map[job.Attempt]context.CancelFunc{}}
	for _, o := range opts {
		o.applyJob(r)
	}
	return r.run(ctx)
}

// Failure as the cause of a context's end fails the job of a [Leader.Invoke], and the subjob when one is named: see
// [job.Board.Fail].
type Failure struct{ SubJob, Reason string }

// Error implements error.
func (e *Failure) Error() string { return "the job was failed: " + e.Reason }

// jobRunner drives one board. Only the goroutine of run touches it: the others send what to do to it.
type jobRunner struct {
	leader *Leader
	board  *job.Board
	memory *superstep.Memory
	answer func(context.Context, job.Assignment, thread.Question) (any, error)
	decide func(context.Context, job.View) (job.Decision, error)

	happened   chan func(now time.Time)
	attempts   map[job.Attempt]context.CancelFunc // under way
	stopPlan   context.CancelFunc                 // nil while nothing is planned
	cause      error                              // why the job was stopped from here; nil when it was not
	interrupts <-chan struct{}                    // the end of the caller's context; nil once that was seen
}

func (r *jobRunner) run(ctx context.Context) (thread.JobAnswer, error) {
	r.interrupts = ctx.Done()
	for {
		now := time.Now()
		w := r.board.Ready(now)
		r.begin(ctx, w)
		if w.Done {
			return r.result()
		}
		if !r.underWay() {
			again, err := r.unblock(ctx, now)
			if err == nil && !again && w.Wake.IsZero() {
				err = errors.New("nothing of it is under way, and nothing is left to do")
			}
			if err != nil {
				if r.cause != nil {
					return r.result()
				}
				r.stop(err)
			}
			if again || err != nil {
				continue
			}
		}
		r.await(ctx, w.Wake)
	}
}

func (r *jobRunner) underWay() bool { return len(r.attempts) > 0 || r.stopPlan != nil }

// await waits for the next thing to happen, and takes it in.
func (r *jobRunner) await(ctx context.Context, wake time.Time) {
	var alarm <-chan time.Time
	if !wake.IsZero() {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case take := <-r.happened:
		take(time.Now())
	case <-alarm:
	case <-r.interrupts:
		r.interrupts = nil
		r.stop(context.Cause(ctx))
	}
}

// stop stops the job for a cause, the first of which counts.
func (r *jobRunner) stop(cause error) {
	if r.cause == nil {
		r.cause = cause
	}
	// A job that ends anyway does not stop: it is about to say why itself.
	now := time.Now()
	var failure *Failure
	if errors.As(cause, &failure) {
		_ = r.board.Fail(job.Halt{SubJob: failure.SubJob, Reason: clip.Text(failure.Reason, job.MaxNote)}, now)
		return
	}
	_ = r.board.Stop(job.Halt{Reason: clip.Text(cause.Error(), job.MaxNote)}, now)
}

// unblock does what the job waits for when nothing of it is under way; again says that there may be work now.
func (r *jobRunner) unblock(ctx context.Context, now time.Time) (again bool, err error) {
	v := r.board.View(now)
	switch {
	case v.Phase == job.PhaseOverBudget:
		return false, errors.New("its budget is spent: give it a larger one")
	case v.Phase != job.PhaseApproving:
		return false, nil // a wait between two attempts
	case r.decide == nil:
		return false, errors.New("its plan waits for approval: decide with leader.WithPlanDecisions")
	}
	d, err := r.decide(ctx, v)
	if err != nil {
		return false, fmt.Errorf("decide on plan %d: %w", v.PlanVersion, err)
	}
	return true, r.board.Decide(d, now)
}

func (r *jobRunner) result() (thread.JobAnswer, error) {
	v := r.board.View(time.Now())
	v.Leader = r.leader.name
	switch {
	case v.Status == job.StatusFinished:
		return runtime.NewAnswer(v, r.board.Answer()), nil
	case r.cause != nil:
		return thread.JobAnswer{View: v}, &thread.JobError{View: v, Message: r.cause.Error(), Cause: r.cause}
	}
	return thread.JobAnswer{View: v}, &thread.JobError{View: v, Message: v.Reason}
}
