package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
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
		return c.startRun(ctx, g, StartRequest{Graph: last.graph, Thread: r.Thread, Checkpoint: r.Checkpoint, branch: true,
			By: r.By, Reason: r.Reason, Token: r.Token})
	}
	req := StartRequest{Graph: last.graph, Thread: r.As, By: r.By, Reason: r.Reason}
	if err := checkStart(req); err != nil {
		return ThreadView{}, err
	}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(&lastRun{thread: r.As, graph: last.graph},
		approval.Control{Op: approval.OpFork, On: r.Checkpoint}, asker{by: r.By, token: r.Token})}); err != nil {
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
	in.Asked = &protocol.Asked{By: r.By, Reason: r.Reason, From: r.Thread, Token: r.Token}
	v, err := c.launch(ctx, req, in, nil)
	if errors.Is(err, ErrRunning) {
		err = existsAlready(last.graph, r.As)
	}
	return v, err
}

// branch is the input of a new thread's first run, which begins with a checkpoint of another thread.
func branch(past *past.Past, last *lastRun, r ForkRequest) (protocol.GraphInput, error) {
	thread, ok := past.At(r.Checkpoint, pregel.ForReplay)
	if !ok {
		return protocol.GraphInput{}, noCheckpoint(last.graph, r.Thread, r.Checkpoint)
	}
	program, _ := past.Thread()
	state, err := program.EncodeThread(thread.AsNewest())
	if err != nil {
		return protocol.GraphInput{}, &Error{Kind: ErrBadInput, Graph: last.graph, Thread: r.Thread, Message: "the checkpoint cannot be stored", Cause: err}
	}
	return protocol.GraphInput{Graph: last.graph, Spec: program.Spec, State: state, Replay: true}, nil
}

func existsAlready(graph, thread string) error {
	return &Error{Kind: ErrBadInput, Graph: graph, Thread: thread, Message: fmt.Sprintf("thread %q exists already", thread),
		Do: "Choose an id that no thread has"}
}

func noThread(thread string) error {
	return &Error{Kind: ErrNotFound, Thread: thread, Message: "there is no thread " + quote(thread),
		Do: "List the threads there are", Command: []string{"list"}}
}

// Drain asks a thread's run to stop before its next superstep, and returns when that is accepted: Wait tells when it stands
// still. A run that does not run stays as it is. The reason has at most 1,000 bytes. Errors: ErrNotFound; ErrBadInput; ErrNoWorker; ErrNoServer.
func (c *Client) Drain(ctx context.Context, thread, reason string) (ThreadView, error) {
	return c.DrainWith(ctx, DrainRequest{Thread: thread, Reason: reason})
}

// DrainWith is [Client.Drain] that says who asks.
func (c *Client) DrainWith(ctx context.Context, r DrainRequest) (ThreadView, error) {
	return c.drainRun(ctx, nil, r)
}

func (c *Client) drainRun(ctx context.Context, _ *graphadapter.Graph, r DrainRequest) (ThreadView, error) {
	if err := checkDrain(&r); err != nil {
		return ThreadView{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return ThreadView{}, err
	}
	if last.open {
		req := protocol.DrainRequest{ID: uuid.NewString(), Reason: r.Reason, By: r.By, Token: r.Token}
		err := c.update(ctx, last, req.ID, protocol.UpdateDrain, req, nil)
		if err != nil && !errors.Is(err, errEnded) {
			return ThreadView{}, err
		}
	}
	return c.Show(ctx, r.Thread)
}

// checkDrain checks a request, and gives it a reason when it has none.
func checkDrain(r *DrainRequest) error {
	r.Reason = cmp.Or(r.Reason, "no reason given")
	return checkAsker(r.Thread, r.By, r.Reason)
}
