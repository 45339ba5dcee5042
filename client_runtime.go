package superstep

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows"
)

// A Client is a Runtime: threads on Temporal.
var _ Runtime = (*Client)(nil)

func (c *Client) startRun(ctx context.Context, _ *graphadapter.Graph, r StartRequest) (ThreadView, error) {
	if r.Input == nil {
		last, err := c.lastRun(ctx, r.Thread)
		if err != nil {
			return ThreadView{}, err
		}
		if last != nil && canRetry(last.status) {
			return c.Retry(ctx, r.Thread)
		}
	}
	return c.Start(ctx, r)
}

func (c *Client) waitRun(ctx context.Context, g *graphadapter.Graph, thread string) (ThreadView, error) {
	v, err := c.Wait(ctx, thread)
	if err != nil {
		return v, err
	}
	if v.Status == StatusFailed || v.Status == StatusCancelled || v.Status == StatusTerminated {
		return v, c.failureOf(ctx, v)
	}
	return v, nil
}

// failureOf returns a failed run's cause as far as its last event tells.
func (c *Client) failureOf(ctx context.Context, v ThreadView) error {
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
		_, err := c.Resume(ctx, ResumeRequest{Thread: thread, Value: a.only})
		return err
	}
	return c.resumeMany(ctx, thread, a.byID)
}

// resumeMany answers several questions at once, all or none.
func (c *Client) resumeMany(ctx context.Context, thread string, byID map[string]json.RawMessage) error {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return err
	}
	if !last.open {
		return c.notAsking(ctx, last, ResumeRequest{Thread: thread})
	}
	req := workflows.ResumeRequest{ID: uuid.NewString()}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		req.Answers = append(req.Answers, pregel.Answer{QuestionID: id, Value: byID[id]})
	}
	if err := checkAnswerSize(last, req); err != nil {
		return err
	}
	return c.update(ctx, thread, last.runID, req.ID, workflows.UpdateResume, req, nil)
}

func (c *Client) stateOf(ctx context.Context, g *graphadapter.Graph, r StateRequest) (StateView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return StateView{}, err
	}
	if r.Checkpoint == "" {
		return c.stateNow(ctx, last, r)
	}
	past, err := c.checkpoints(ctx, g, last)
	if err != nil {
		return StateView{}, err
	}
	for _, s := range past {
		if s.Checkpoint == r.Checkpoint {
			v, err := stateView(last.graph, s, r)
			v.Status = statusOf(last.status)
			return v, err
		}
	}
	return StateView{}, noCheckpoint(last.graph, r.Thread, r.Checkpoint)
}

// checkpoints replays a run and returns its checkpoints, oldest first.
func (c *Client) checkpoints(ctx context.Context, g *graphadapter.Graph, last *lastRun) ([]*pregel.Snapshot, error) {
	program, err := g.Program()
	if err != nil {
		return nil, err
	}
	var past []*pregel.Snapshot
	sink := checkpointSink(func(r *pregel.Record) {
		if s, err := program.Snapshot(pregel.NewThread(), r, false); err == nil {
			past = append(past, s)
		}
	})
	if err := c.tail.Replay(ctx, last.thread, last.runID, workflows.NewReader(g, sink)); err != nil {
		return nil, c.explain(err, last.graph, last.thread)
	}
	return past, nil
}

// checkpointSink is told of the root graph's checkpoints.
type checkpointSink func(*pregel.Record)

func (checkpointSink) Began(int64, *pregel.Program, *pregel.Thread, graphadapter.Durability) {}
func (checkpointSink) Ended(int64, pregel.Status)                                            {}

func (s checkpointSink) Happened(_ int64, e pregel.Event) {
	if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
		s(e.Checkpoint)
	}
}

func (s checkpointSink) Edited(_ int64, namespace string, r *pregel.Record) {
	if namespace == "" {
		s(r)
	}
}

func (c *Client) historyOf(ctx context.Context, _ *graphadapter.Graph, r HistoryRequest) ([]CheckpointView, error) {
	return c.History(ctx, r.Thread)
}

func (c *Client) retryRun(ctx context.Context, _ *graphadapter.Graph, thread string) (ThreadView, error) {
	return c.Retry(ctx, thread)
}

func (c *Client) cancelRun(ctx context.Context, _ *graphadapter.Graph, thread, reason string) (ThreadView, error) {
	return c.Cancel(ctx, thread, reason)
}
