package superstep

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"superstep.dev/approval"
	"superstep.dev/workflows/protocol"
)

// Retry continues a thread whose last run failed, was cancelled or was terminated: from its last checkpoint, without
// running again what had finished, and with the settings that the run had. A run that is held open ([WithHold]) goes on itself.
// Errors: ErrNotFound, ErrNotFailed, ErrNoWorker, ErrNoServer; ErrRunning for one that is paused.
func (c *Client) Retry(ctx context.Context, thread string) (ThreadView, error) {
	return c.RetryWith(ctx, RetryRequest{Thread: thread})
}

// RetryWith is [Client.Retry] that says who asks, and why.
func (c *Client) RetryWith(ctx context.Context, r RetryRequest) (ThreadView, error) {
	if err := checkAsker(r.Thread, r.By, r.Reason); err != nil {
		return ThreadView{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return ThreadView{}, err
	}
	if last.open {
		view, err := c.retryHeld(ctx, last, r)
		if errors.Is(err, errEnded) {
			return c.RetryWith(ctx, r)
		}
		return view, err
	}
	if !canRetry(last.status) {
		return ThreadView{}, nothingToRetry(last, string(statusOf(last.status)))
	}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph,
		Control: controlCheck(last, approval.Control{Op: approval.OpRetry}, asker{by: r.By, token: r.Token})}); err != nil {
		return ThreadView{}, err
	}
	in := protocol.GraphInput{Graph: last.graph, Asked: askedOf(r.By, r.Reason, r.Token)}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return ThreadView{}, err
	}
	req := StartRequest{Graph: last.graph, Thread: r.Thread}
	req.set(settings)
	return c.launch(ctx, req, in, last)
}

// retryHeld lets an open run go on that failed and was held.
func (c *Client) retryHeld(ctx context.Context, last *lastRun, r RetryRequest) (ThreadView, error) {
	var state protocol.State
	if err := c.query(ctx, last, protocol.QueryOutline, &state); err != nil {
		return ThreadView{}, err
	}
	if state.Failure == nil {
		return ThreadView{}, nothingToRetry(last, state.Status)
	}
	id := uuid.NewString()
	if err := c.update(ctx, last, id, protocol.UpdateRetry, protocol.RetryRequest{ID: id, By: r.By, Reason: r.Reason, Token: r.Token}, nil); err != nil {
		return ThreadView{}, err
	}
	return c.goingOn(last), nil
}

func nothingToRetry(last *lastRun, status string) error {
	return &Error{Kind: ErrNotFailed, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q has nothing to retry: its run is %s", last.thread, status),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

// goingOn is the view of an open run that was given something to do: what it does is told behind the events that it had.
func (c *Client) goingOn(last *lastRun) ThreadView {
	v := c.viewOf(last)
	v.Status = StatusRunning
	return v
}

// awaitEnd waits for a run's last event, and for that of the runs that it is continued as.
func (c *Client) awaitEnd(ctx context.Context, last *lastRun) error {
	return c.temporal.GetWorkflow(ctx, last.thread, last.runID).Get(ctx, nil)
}
