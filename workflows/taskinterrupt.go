package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/workflows/protocol"
)

// underWay is the activity of a task that has not ended.
type underWay struct {
	id     string
	task   *pregel.Task
	cancel workflow.CancelFunc
	// stored is what it had stored before it was cancelled; nil when it was not asked for, or could not be.
	stored *segment.StoredTask
}

// begin counts a task as one under way, and returns the context of its activity.
func (w *window) begin(ctx workflow.Context, task *pregel.Task) (*underWay, workflow.Context) {
	u := &underWay{id: protocol.ActivityID(task), task: task}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx, u.cancel = workflow.WithCancel(ctx)
	w.running++
	w.under = append(w.under, u)
	return u, ctx
}

// end counts it no more.
func (w *window) end(u *underWay) {
	w.running--
	w.under = slices.DeleteFunc(w.under, func(other *underWay) bool { return other == u })
	w.interrupted = w.interrupted && w.running > 0
}

// mustEnd reports whether the tasks under way are to be told to end: step is the superstep's context.
func (w *window) mustEnd(step workflow.Context) bool {
	return !w.interrupted && w.running > 0 && step.Err() != nil
}

// interruptTasks tells the tasks under way to end: the run was cancelled, or the superstep is out of time.
//
// An activity that no worker has at that moment, because its last one was lost or gave it back, is cancelled by the server
// at once, and what it had stored is forgotten: with it the only trace of an effect that it called. So it is read before.
func (r *run) interruptTasks(ctx workflow.Context) {
	r.tasks.interrupted = true
	under := slices.Clone(r.tasks.under)
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
