package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/internal/clip"
	"superstep.dev/job"
)

// begin begins and ends what the board wants begun and ended.
func (r *jobRunner) begin(ctx context.Context, w job.Work) {
	for _, a := range w.Cancel {
		if cancel, ok := r.attempts[a]; ok {
			cancel()
		}
	}
	if w.CancelPlan && r.stopPlan != nil {
		r.stopPlan()
	}
	if w.Plan != nil {
		r.plan(ctx, *w.Plan)
	}
	for _, a := range w.Run {
		r.attempt(ctx, a)
	}
}

// plan calls the planner.
func (r *jobRunner) plan(ctx context.Context, req job.PlanRequest) {
	ctx, r.stopPlan = context.WithCancel(ctx)
	go func() {
		draft, err := r.leader.planner.Plan(ctx, req)
		r.happened <- func(now time.Time) {
			r.stopPlan()
			r.stopPlan = nil
			r.board.Planned(draft, err, now)
		}
	}()
}

// attempt has an expert make an attempt, on a thread of its own.
func (r *jobRunner) attempt(ctx context.Context, a job.Assignment) {
	id := job.Attempt{SubJob: a.SubJob, Attempt: a.Attempt}
	ctx, r.attempts[id] = context.WithCancel(ctx)
	e, ok := r.leader.expert(a.Expert)
	limit := cmp.Or(e.profile.Timeout, r.board.Job.Policy.AttemptTimeout)
	go func() {
		m, fatal := job.WorkflowMessage{Status: job.ExecutionError, Evaluation: fmt.Sprintf("the leader has no expert %q", a.Expert)}, error(nil)
		if ok {
			m, fatal = r.work(ctx, e, a, limit)
		}
		r.happened <- func(now time.Time) {
			r.attempts[id]()
			delete(r.attempts, id)
			if fatal != nil {
				r.stop(fatal)
			}
			r.board.Reported(id, m, now)
		}
	}()
}

// work runs the expert's graph to its end, or for as long as it may take. An error ends the whole job.
func (r *jobRunner) work(ctx context.Context, e Expert, a job.Assignment, limit time.Duration) (job.WorkflowMessage, error) {
	thread := e.graph.Thread(r.memory, a.Thread())
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out: it had not ended after %v", limit))
	defer cancel()
	result, err := thread.Invoke(bounded, a)
	for err == nil && !result.Status.Failed() && result.Status != StatusFinished {
		result, err = r.reply(bounded, thread, a, result)
	}
	switch {
	case err == nil:
		return result.Output, nil
	case bounded.Err() == nil:
		if !errors.Is(err, errUnanswered) {
			return failedAttempt(err), nil
		}
		return failedAttempt(err), err
	case ctx.Err() == nil:
		err = context.Cause(bounded)
	}
	// Its run goes on when nobody waits for it any more.
	if ended := thread.Cancel(context.WithoutCancel(ctx), "the attempt is to end"); ended != nil {
		err = ended
	}
	return failedAttempt(err), nil
}

// errUnanswered says that an expert waits for what nobody gives it.
var errUnanswered = errors.New("nobody answers it")

// reply answers an expert that asks, and waits on.
func (r *jobRunner) reply(ctx context.Context, thread *Thread[job.WorkflowMessage], a job.Assignment, at Result[job.WorkflowMessage]) (Result[job.WorkflowMessage], error) {
	who := fmt.Sprintf("expert %q, at subjob %q", a.Expert, a.SubJob)
	if len(at.Questions) == 0 {
		return at, fmt.Errorf("%s, is %s, and %w", who, at.Status, errUnanswered)
	}
	byID := map[string]any{}
	for _, q := range at.Questions {
		if r.answer == nil {
			return at, fmt.Errorf("%s, asks %q, and %w: answer with superstep.WithExpertAnswers", who, q.Text(), errUnanswered)
		}
		v, err := r.answer(ctx, a, q)
		if err != nil {
			return at, fmt.Errorf("%s, asks %q: %w: %w", who, q.Text(), errUnanswered, err)
		}
		byID[q.ID] = v
	}
	return thread.ResumeByID(ctx, byID)
}

// failedAttempt is what an attempt ends with whose run failed.
func failedAttempt(err error) job.WorkflowMessage {
	why := clip.Text(err.Error(), job.MaxNote)
	return job.WorkflowMessage{Status: job.ExecutionError, Evaluation: why, Lesson: why, Usage: job.Usage{Unknown: true}}
}
