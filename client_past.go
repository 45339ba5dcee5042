package superstep

import (
	"context"

	"superstep.dev/graphadapter"
)

// StateOf returns a thread's state, now or at a checkpoint of its history, of the whole graph or of a subgraph under way.
//
// Errors: ErrNotFound for a thread, checkpoint or subgraph that there is not; ErrNoWorker; ErrNoServer.
func (c *Client) StateOf(ctx context.Context, r StateRequest) (StateView, error) {
	return c.stateOf(ctx, nil, r)
}

// HistoryOf returns a thread's checkpoints, newest first: those of all its runs that the server still has, of every
// branch.
//
// Errors: ErrNotFound for a thread, subgraph or checkpoint that there is not; ErrNoServer.
func (c *Client) HistoryOf(ctx context.Context, r HistoryRequest) ([]CheckpointView, error) {
	return c.historyOf(ctx, nil, r)
}

// Update writes to a thread's state from outside, all of the updates or none, and returns the state as it is then; see
// [Thread.Update].
//
// Errors, each of which leaves the thread as it was: ErrRunning while a run is under way; ErrNotFound; ErrBadInput for an
// update that cannot be applied; ErrNoWorker; ErrNoServer.
func (c *Client) Update(ctx context.Context, r UpdateRequest) (StateView, error) {
	return c.updateState(ctx, nil, r)
}

// Fork begins a run from an earlier checkpoint of a thread, and returns when it is accepted; see [Thread.Fork].
//
// Errors: ErrNotFound; ErrRunning while a run is under way, or when the new thread exists already; ErrNoWorker;
// ErrNoServer.
func (c *Client) Fork(ctx context.Context, r ForkRequest) (ThreadView, error) {
	return c.forkRun(ctx, nil, r)
}

// Drain asks a thread's run to stop before its next superstep, and returns when it stands still. A run that does not run
// stays as it is. The reason has at most 1,000 bytes. Errors: ErrNotFound; ErrBadInput; ErrNoWorker; ErrNoServer.
func (c *Client) Drain(ctx context.Context, thread, reason string) (ThreadView, error) {
	return c.drainRun(ctx, nil, thread, reason)
}

func (c *Client) updateState(_ context.Context, _ *graphadapter.Graph, r UpdateRequest) (StateView, error) {
	return StateView{}, notThereYet(r.Thread, "updates")
}

func (c *Client) forkRun(_ context.Context, _ *graphadapter.Graph, r ForkRequest) (ThreadView, error) {
	return ThreadView{}, notThereYet(r.Thread, "forks")
}

func (c *Client) drainRun(_ context.Context, _ *graphadapter.Graph, thread, _ string) (ThreadView, error) {
	return ThreadView{}, notThereYet(thread, "drains")
}
