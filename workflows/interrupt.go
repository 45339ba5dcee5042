package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/segment"
)

// mustEnd reports whether the tasks under way are to be told to end: step is the superstep's context.
func (t *tasks) mustEnd(step workflow.Context) bool {
	return !t.interrupted && t.running > 0 && step.Err() != nil
}

// interrupt tells the tasks under way to end: the run was cancelled, or the superstep is out of time.
//
// An activity that no worker has at that moment, because its last one was lost or gave it back, is cancelled by the server
// at once, and what it had stored is forgotten: with it the only trace of an effect that it called. So it is read before.
func (t *tasks) interrupt(ctx workflow.Context) {
	t.interrupted = true
	under := slices.Clone(t.under)
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := readTasks(ctx, under); err != nil {
			workflow.GetLogger(ctx).Error("what the tasks under way stored is not known; they are told to end all the same", "error", err)
		}
		for _, u := range under {
			u.cancel()
		}
	})
}

// readTasks reads what these have stored, in as many pages as it takes.
func readTasks(ctx workflow.Context, under []*underWay) error {
	run := workflow.GetInfo(ctx).WorkflowExecution
	req := segment.StoredTasksRequest{Thread: run.ID, Run: run.RunID}
	for _, u := range under {
		req.ActivityIDs = append(req.ActivityIDs, u.id)
	}
	for len(req.ActivityIDs) > 0 {
		var page segment.StoredTasks
		if err := readStored(ctx, segment.StoredTasksActivity, req, &page); err != nil {
			return err
		}
		for _, u := range under {
			if stored, ok := page.Tasks[u.id]; ok {
				u.stored = &stored
			}
		}
		req.ActivityIDs = page.Rest
	}
	return nil
}

// The bounds of asking the server what a segment has stored. It is asked again and again, but does not keep a run from
// ending.
const (
	storedTimeout = 5 * time.Second
	storedWithin  = time.Minute
)

// interrupt makes the segment under way, if there is one, leave as soon as none of its tasks is: something arrived
// that it must not go past.
//
// An activity that no worker has at that moment, because its last one was lost or gave it back, is cancelled by the server
// at once, and what it had stored is forgotten. It is read before.
func (s *segments) interrupt(ctx workflow.Context) {
	under := s.under
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
		RetryPolicy: retries(),
	})
	return workflow.ExecuteLocalActivity(local, activity, req).Get(ctx, reply)
}
