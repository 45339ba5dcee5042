package superstep

import (
	"context"
	"fmt"

	"superstep.dev/workflows"
)

// Retry continues a thread whose last run failed, was cancelled or was terminated: from its last checkpoint, without
// running again what had finished, and with the settings that the run had. Errors: ErrNotFound, ErrNotFailed, ErrNoWorker, ErrNoServer.
func (c *Client) Retry(ctx context.Context, thread string) (ThreadView, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	if !canRetry(last.status) {
		status := statusOf(last.status)
		return ThreadView{}, &Error{Kind: ErrNotFailed, Graph: last.graph, Thread: thread,
			Message: fmt.Sprintf("thread %q has nothing to retry: its run is %s", thread, status),
			Do:      "Look at it", Command: []string{"show", thread}}
	}
	if _, err := c.admit(ctx, workflows.AdmitRequest{Graph: last.graph}); err != nil {
		return ThreadView{}, err
	}
	in := workflows.GraphInput{Graph: last.graph}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return ThreadView{}, err
	}
	req := StartRequest{Graph: last.graph, Thread: thread}
	req.set(settings)
	return c.launch(ctx, req, in, last)
}

// awaitEnd waits for a run's last event, and for that of the runs that it is continued as.
func (c *Client) awaitEnd(ctx context.Context, last *lastRun) error {
	return c.temporal.GetWorkflow(ctx, last.thread, last.runID).Get(ctx, nil)
}
