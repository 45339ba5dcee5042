package cli

import (
	"context"
	"iter"

	"superstep.dev/job"
	"superstep.dev/thread"
)

func (s *script) SubmitJob(ctx context.Context, req thread.SubmitJob) (job.View, error) {
	return play[job.View](ctx, s, "SubmitJob", req, nil)
}

func (s *script) Jobs(ctx context.Context, q thread.JobsQuery) ([]thread.JobItem, error) {
	return play[[]thread.JobItem](ctx, s, "Jobs", q, nil)
}

func (s *script) Job(ctx context.Context, id string) (thread.JobView, error) {
	return play[thread.JobView](ctx, s, "Job", id, nil)
}

func (s *script) JobAnswer(ctx context.Context, id string) (thread.JobAnswer, error) {
	return play[thread.JobAnswer](ctx, s, "JobAnswer", id, nil)
}

// FollowJob plays the events of the reply's view.
func (s *script) FollowJob(ctx context.Context, id string, after int64) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		events, err := play[[]job.Event](ctx, s, "FollowJob", []any{id, after}, nil)
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(job.Event{}, err)
		}
	}
}

func (s *script) StopJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return play[job.View](ctx, s, "StopJob", []any{id, h}, nil)
}

func (s *script) FailJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return play[job.View](ctx, s, "FailJob", []any{id, h}, nil)
}

func (s *script) RecoverJob(ctx context.Context, id string, r job.Recover) (job.View, error) {
	return play[job.View](ctx, s, "RecoverJob", []any{id, r}, nil)
}

func (s *script) RetrySubJob(ctx context.Context, id, subjob, lesson string) (job.View, error) {
	return play[job.View](ctx, s, "RetrySubJob", []string{id, subjob, lesson}, nil)
}

func (s *script) DecidePlan(ctx context.Context, id string, d job.Decision) (job.View, error) {
	return play[job.View](ctx, s, "DecidePlan", []any{id, d}, nil)
}

func (s *script) ChangeExperts(ctx context.Context, id string, add []job.Profile, remove ...string) (job.View, error) {
	return play[job.View](ctx, s, "ChangeExperts", []any{id, add, remove}, nil)
}

func (s *script) LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error) {
	return play[[]job.Profile](ctx, s, "LeaderExperts", leader, nil)
}

func (s *script) RaiseBudget(ctx context.Context, id string, b job.Budget) (job.View, error) {
	return play[job.View](ctx, s, "RaiseBudget", []any{id, b}, nil)
}
