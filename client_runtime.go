package superstep

import (
	"context"

	"superstep.dev/graphadapter"
)

// A Client is a Runtime: threads on Temporal.
var _ Runtime = (*Client)(nil)

func (c *Client) waitRun(ctx context.Context, g *graphadapter.Graph, thread string) (ThreadView, error) {
	v, err := c.Wait(ctx, thread)
	if err != nil {
		return v, err
	}
	if v.Status.unfinished() {
		return v, c.failureOf(ctx, v)
	}
	return v, nil
}

// failureOf returns a failed run's cause as far as its last event tells, or the run itself when it is held open.
func (c *Client) failureOf(ctx context.Context, v ThreadView) error {
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

func (c *Client) resumeRun(ctx context.Context, g *graphadapter.Graph, thread string, a answers) (ResumeReply, error) {
	if a.only == nil && len(a.byID) == 0 {
		return ResumeReply{}, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: thread, Message: "there is no answer"}
	}
	return c.Resume(ctx, ResumeRequest{Thread: thread, Question: a.question, Value: a.only, Answers: a.byID, By: a.by, Token: a.token,
		Tokens: a.tokens, ID: a.id})
}

func (c *Client) retryRun(ctx context.Context, _ *graphadapter.Graph, r RetryRequest) (ThreadView, error) {
	return c.RetryWith(ctx, r)
}

func (c *Client) cancelRun(ctx context.Context, _ *graphadapter.Graph, r CancelRequest) (ThreadView, error) {
	return c.CancelWith(ctx, r)
}
