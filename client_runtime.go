package superstep

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows"
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

func (c *Client) resumeRun(ctx context.Context, g *graphadapter.Graph, thread string, a answers) error {
	if a.only != nil {
		_, err := c.Resume(ctx, ResumeRequest{Thread: thread, Question: a.question, Value: a.only, By: a.by, Token: a.token})
		return err
	}
	return c.resumeMany(ctx, thread, a)
}

// resumeMany answers several questions at once, all or none.
func (c *Client) resumeMany(ctx context.Context, thread string, a answers) error {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return err
	}
	if !last.open {
		return c.notAsking(ctx, last, ResumeRequest{Thread: thread})
	}
	req := workflows.ResumeRequest{ID: uuid.NewString(), By: a.by, Token: a.token}
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		req.Answers = append(req.Answers, pregel.Answer{QuestionID: id, Value: a.byID[id]})
	}
	if err := checkAnswerSize(last, req); err != nil {
		return err
	}
	_, err = c.answer(ctx, last, req)
	return err
}

func (c *Client) retryRun(ctx context.Context, _ *graphadapter.Graph, r RetryRequest) (ThreadView, error) {
	return c.RetryWith(ctx, r)
}

func (c *Client) cancelRun(ctx context.Context, _ *graphadapter.Graph, r CancelRequest) (ThreadView, error) {
	return c.CancelWith(ctx, r)
}
