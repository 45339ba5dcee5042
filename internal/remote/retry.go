package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// RetryRun implements runtime.Runtime.
func (c *Threads) RetryRun(ctx context.Context, _ *graphadapter.Graph, r thread.RetryRequest) (thread.View, error) {
	if err := runtime.CheckAsker(r.Thread, r.By, r.Reason); err != nil {
		return thread.View{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	if last.open {
		view, err := c.retryHeld(ctx, last, r)
		if errors.Is(err, errEnded) {
			return c.RetryRun(ctx, nil, r)
		}
		return view, err
	}
	if !canRetry(last.status) {
		return thread.View{}, nothingToRetry(last, string(statusOf(last.status)))
	}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph,
		Control: controlCheck(last, approval.Control{Op: approval.OpRetry}, runtime.Asker{By: r.By, Token: r.Token})}); err != nil {
		return thread.View{}, err
	}
	in := protocol.GraphInput{Graph: last.graph, Asked: runtime.AskedOf(r.By, r.Reason, r.Token)}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return thread.View{}, err
	}
	req := runtime.Start{StartRequest: thread.StartRequest{Graph: last.graph, Thread: r.Thread}}
	req.Restore(settings)
	return c.launch(ctx, req, in, last)
}

// retryHeld lets an open run go on that failed and was held.
func (c *Threads) retryHeld(ctx context.Context, last *lastRun, r thread.RetryRequest) (thread.View, error) {
	var state protocol.State
	if err := c.query(ctx, last, protocol.QueryOutline, &state); err != nil {
		return thread.View{}, err
	}
	if state.Failure == nil {
		return thread.View{}, nothingToRetry(last, state.Status)
	}
	id := uuid.NewString()
	if err := c.update(ctx, last, id, protocol.UpdateRetry, protocol.RetryRequest{ID: id, By: r.By, Reason: r.Reason, Token: r.Token}, nil); err != nil {
		return thread.View{}, err
	}
	return c.goingOn(last), nil
}

func nothingToRetry(last *lastRun, status string) error {
	return &thread.Error{Kind: thread.ErrNotFailed, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q has nothing to retry: its run is %s", last.thread, status),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

// WaitRun implements runtime.Runtime.
func (c *Threads) WaitRun(ctx context.Context, g *graphadapter.Graph, thread string) (thread.View, error) {
	v, err := c.Wait(ctx, thread)
	if err != nil {
		return v, err
	}
	if v.Status.Unfinished() {
		return v, c.failureOf(ctx, v)
	}
	return v, nil
}

// ShowRun implements runtime.Runtime.
func (c *Threads) ShowRun(ctx context.Context, _ *graphadapter.Graph, thread string) (thread.View, error) {
	return c.Show(ctx, thread)
}

// failureOf returns a failed run's cause as far as its last event tells, or the run itself when it is held open.
func (c *Threads) failureOf(ctx context.Context, v thread.View) error {
	if v.Held && v.Failure != nil {
		return v.Failure
	}
	last, err := c.theLastRun(ctx, v.Thread)
	if err != nil {
		return err
	}
	left, _, err := c.left(ctx, last)
	if err != nil || left.Failure == nil {
		return nil
	}
	return left.Failure
}
