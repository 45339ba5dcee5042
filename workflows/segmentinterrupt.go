package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/segment"
)

// The bounds of asking the server what a segment has stored. It is asked again and again, but does not keep a run from
// ending.
const (
	storedTimeout = 5 * time.Second
	storedWithin  = time.Minute
)

// interruptSegment makes the segment under way, if there is one, leave as soon as none of its tasks is: something arrived
// that it must not go past.
//
// An activity that no worker has at that moment, because its last one was lost or gave it back, is cancelled by the server
// at once, and what it had stored is forgotten. It is read before.
func (r *run) interruptSegment(ctx workflow.Context) {
	under := r.segments.under
	if under == nil || under.interrupted {
		return
	}
	under.interrupted = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		run := workflow.GetInfo(ctx).WorkflowExecution
		err := readStored(ctx, segment.StoredActivity,
			segment.StoredRequest{Thread: run.ID, Run: run.RunID, ActivityID: under.id}, &under.stored)
		if err != nil {
			workflow.GetLogger(ctx).Error("what the segment stored is not known; it leaves all the same", "error", err)
		}
		under.unread = err != nil
		under.cancel()
	})
}

// readStored asks the server, in a local activity, what activities under way have stored.
func readStored(ctx workflow.Context, activity string, req, reply any) error {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: storedTimeout, ScheduleToCloseTimeout: storedWithin,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
	})
	return workflow.ExecuteLocalActivity(local, activity, req).Get(ctx, reply)
}
