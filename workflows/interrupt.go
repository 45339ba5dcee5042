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

// readTasks reads what these have stored.
func readTasks(ctx workflow.Context, under []*underWay) error {
	var ids []string
	for _, u := range under {
		ids = append(ids, u.id)
	}
	all, err := readStored(ctx, ids)
	for _, u := range under {
		if stored, ok := all[u.id]; ok {
			u.stored = &stored
		}
	}
	return err
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
		stored, err := readStored(ctx, []string{under.id})
		under.stored = stored[under.id]
		if err != nil {
			workflow.GetLogger(ctx).Error("what the segment stored is not known; it leaves all the same", "error", err)
		}
		under.unread = err != nil
		under.cancel()
	})
}

// readStored asks the server, in local activities, what the activities of these ids have stored, in as many pages as it takes.
func readStored(ctx workflow.Context, ids []string) (map[string]segment.Stored, error) {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: storedTimeout, ScheduleToCloseTimeout: storedWithin,
		RetryPolicy: retries(),
	})
	run, all := workflow.GetInfo(ctx).WorkflowExecution, map[string]segment.Stored{}
	for len(ids) > 0 {
		var page segment.StoredReply
		req := segment.StoredRequest{Thread: run.ID, Run: run.RunID, ActivityIDs: ids}
		if err := workflow.ExecuteLocalActivity(local, segment.StoredActivity, req).Get(ctx, &page); err != nil {
			return all, err
		}
		for _, id := range ids {
			if stored, ok := page.Stored[id]; ok {
				all[id] = stored
			}
		}
		ids = page.Rest
	}
	return all, nil
}
