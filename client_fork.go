package superstep

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows"
)

// Fork begins a run from an earlier checkpoint of a thread, and returns when it is accepted; see [Thread.Fork].
//
// Errors: ErrNotFound; ErrRunning while a run is under way; ErrBadInput when the new thread exists already; ErrNoWorker;
// ErrNoServer.
func (c *Client) Fork(ctx context.Context, r ForkRequest) (ThreadView, error) {
	return c.forkRun(ctx, nil, r)
}

func (c *Client) forkRun(ctx context.Context, g *graphadapter.Graph, r ForkRequest) (ThreadView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return ThreadView{}, err
	}
	g = c.graphOr(g, last)
	if r.Checkpoint == "" {
		return ThreadView{}, noCheckpoint(last.graph, r.Thread, "")
	}
	if r.As == "" {
		return c.startRun(ctx, g, StartRequest{Graph: last.graph, Thread: r.Thread, Checkpoint: r.Checkpoint, branch: true})
	}
	req := StartRequest{Graph: last.graph, Thread: r.As}
	if err := checkStart(req); err != nil {
		return ThreadView{}, err
	}
	if _, err := c.admit(ctx, workflows.AdmitRequest{Graph: last.graph}); err != nil {
		return ThreadView{}, err
	}
	past, err := c.pastWith(ctx, g, last, r.Checkpoint)
	if err != nil {
		return ThreadView{}, err
	}
	in, err := branch(past, last, r)
	if err != nil {
		return ThreadView{}, err
	}
	v, err := c.launch(ctx, req, in, nil)
	if errors.Is(err, ErrRunning) {
		err = existsAlready(last.graph, r.As)
	}
	return v, err
}

// branch is the input of a new thread's first run, which begins with a checkpoint of another thread.
func branch(past *graphadapter.Past, last *lastRun, r ForkRequest) (workflows.GraphInput, error) {
	thread, ok := past.At(r.Checkpoint, pregel.ForReplay)
	if !ok {
		return workflows.GraphInput{}, noCheckpoint(last.graph, r.Thread, r.Checkpoint)
	}
	program, _ := past.Thread()
	state, err := program.EncodeThread(thread.AsNewest())
	if err != nil {
		return workflows.GraphInput{}, &Error{Kind: ErrBadInput, Graph: last.graph, Thread: r.Thread, Message: "the checkpoint cannot be stored", Cause: err}
	}
	return workflows.GraphInput{Graph: last.graph, Spec: program.Spec, State: state, Replay: true}, nil
}

func existsAlready(graph, thread string) error {
	return &Error{Kind: ErrBadInput, Graph: graph, Thread: thread, Message: fmt.Sprintf("thread %q exists already", thread),
		Do: "Choose an id that no thread has"}
}

func noThread(thread string) error {
	return &Error{Kind: ErrNotFound, Thread: thread, Message: "there is no thread " + quote(thread),
		Do: "List the threads there are", Command: []string{"list"}}
}

// maxDrainReason bounds the reason of a drain, in bytes.
const maxDrainReason = 1000

// Drain asks a thread's run to stop before its next superstep, and returns when that is accepted: Wait tells when it stands
// still. A run that does not run stays as it is. The reason has at most 1,000 bytes. Errors: ErrNotFound; ErrBadInput; ErrNoWorker; ErrNoServer.
func (c *Client) Drain(ctx context.Context, thread, reason string) (ThreadView, error) {
	return c.drainRun(ctx, nil, thread, reason)
}

func (c *Client) drainRun(ctx context.Context, _ *graphadapter.Graph, thread, reason string) (ThreadView, error) {
	reason, err := drainReason(thread, reason)
	if err != nil {
		return ThreadView{}, err
	}
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	if last.open {
		req := workflows.DrainRequest{ID: uuid.NewString(), Reason: reason}
		err := c.update(ctx, last, req.ID, workflows.UpdateDrain, req, nil)
		if err != nil && !errors.Is(err, errEnded) {
			return ThreadView{}, err
		}
	}
	return c.Show(ctx, thread)
}

func drainReason(thread, reason string) (string, error) {
	if len(reason) > maxDrainReason {
		return "", &Error{Kind: ErrBadInput, Thread: thread, Message: fmt.Sprintf("a reason has at most %d bytes", maxDrainReason)}
	}
	if reason == "" {
		reason = "no reason given"
	}
	return reason, nil
}
