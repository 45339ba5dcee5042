package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
)

// staysOpen reports whether the run takes more input when nothing is left to do.
func (r *run) staysOpen() bool { return r.in.KeepOpen != 0 && !r.idled }

// nothingLeft reports whether nothing is left to do.
func (r *run) nothingLeft() bool { return r.stands() == pregel.StatusDone }

// awaitNews waits for a condition. A run that is kept open for some time only notices when that is over.
func (r *run) awaitNews(ctx workflow.Context, condition func() bool) {
	if !r.nothingLeft() || r.in.KeepOpen < 0 {
		_ = workflow.Await(ctx, condition)
		return
	}
	if r.idleEnds.IsZero() {
		r.idleEnds = workflow.Now(ctx).Add(time.Duration(r.in.KeepOpen) * time.Millisecond)
	}
	if left := r.idleEnds.Sub(workflow.Now(ctx)); left > 0 {
		_, _ = workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: left,
			TimerOptions: workflow.TimerOptions{Summary: "kept open"}}, condition)
	}
	r.idled = !workflow.Now(ctx).Before(r.idleEnds)
}
