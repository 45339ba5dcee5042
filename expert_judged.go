package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
)

const (
	// judgeTask is the [Task] in which an evaluator is called.
	judgeTask = "superstep.evaluate"
	// judgeTries is how often an evaluator is called for one attempt while it fails.
	judgeTries = 3
)

// judged is what an attempt ends with once its evaluator has said so. An evaluator that fails again and again fails the
// attempt, which says why: the expert's own next attempt cannot know better.
func judged(ctx context.Context, a job.Assignment, made job.WorkflowMessage, judge Evaluator) (job.WorkflowMessage, error) {
	var failed error
	for range judgeTries {
		m, err := Task(ctx, judgeTask, func(ctx context.Context) (job.WorkflowMessage, error) { return judge(ctx, a, made) })
		switch {
		case err == nil:
			m.Output = cmp.Or(m.Output, made.Output)
			if m.Artifacts == nil {
				m.Artifacts = made.Artifacts
			}
			if m.Usage == (job.Usage{}) {
				m.Usage = made.Usage
			}
			return m, nil
		case givenBack(ctx, err):
			return made, err
		}
		if failed = err; graphadapter.IsPermanent(err) {
			break
		}
	}
	reason := fmt.Sprintf("the evaluator of expert %q failed: %v", a.Expert, failed)
	return job.WorkflowMessage{Status: job.ExecutionError, Output: made.Output, Usage: made.Usage,
		Evaluation: clip.Text(reason, job.MaxNote)}, nil
}

// givenBack reports whether an error is no failure of the call: the task waits, begins again, is over, or its allowance is
// spent.
func givenBack(ctx context.Context, err error) bool {
	var spent *OverBudgetError
	return ctx.Err() != nil || errors.Is(err, ErrInterrupted) || errors.Is(err, ErrYielded) ||
		errors.Is(err, graphadapter.ErrFenced) || errors.As(err, &spent)
}
