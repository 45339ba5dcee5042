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

// Update writes to a thread's state from outside, all of the updates or none, and returns the state as it is then; see
// [Thread.Update].
//
// Errors, each of which leaves the thread as it was: ErrRunning while a run is under way; ErrNotFound; ErrBadInput for an
// update that cannot be applied; ErrNoWorker; ErrNoServer.
func (c *Client) Update(ctx context.Context, r UpdateRequest) (StateView, error) {
	return c.updateState(ctx, nil, r)
}

func (c *Client) updateState(ctx context.Context, g *graphadapter.Graph, r UpdateRequest) (StateView, error) {
	for {
		err := c.updateOnceMore(ctx, g, &r)
		if errors.Is(err, errEnded) {
			continue
		}
		if err != nil {
			return StateView{}, err
		}
		return c.stateOf(ctx, g, StateRequest{Thread: r.Thread})
	}
}

// updateOnceMore updates the run that is the thread's last at this moment.
func (c *Client) updateOnceMore(ctx context.Context, g *graphadapter.Graph, r *UpdateRequest) error {
	last, err := c.lastRun(ctx, r.Thread)
	switch {
	case err != nil:
		return err
	case last == nil && (r.Checkpoint != "" || r.Graph == ""):
		return noThread(r.Thread)
	case last == nil:
		return c.updateFirst(ctx, r)
	case r.Graph != "" && last.graph != r.Graph:
		return &Error{Kind: ErrBadInput, Graph: r.Graph, Thread: r.Thread,
			Message: fmt.Sprintf("thread %q belongs to graph %q, not to %q", r.Thread, last.graph, r.Graph)}
	}
	r.Graph = last.graph
	if last.open {
		return c.updateOpen(ctx, g, last, r)
	}
	return c.updateClosed(ctx, g, last, r)
}

// updateOpen lets the run apply the updates while it stands still.
func (c *Client) updateOpen(ctx context.Context, g *graphadapter.Graph, last *lastRun, r *UpdateRequest) error {
	var spec *pregel.Spec
	if err := c.query(ctx, last, workflows.QueryGraph, &spec); err != nil {
		return err
	}
	if err := checkUpdates(spec, *r); err != nil {
		return err
	}
	req := workflows.UpdateStateRequest{ID: uuid.NewString(), Edits: r.Updates, Within: r.Subgraph}
	if r.Checkpoint != "" {
		var err error
		if req.State, err = c.stateAt(ctx, g, last, r.Checkpoint); err != nil {
			return err
		}
	}
	var reply workflows.UpdateStateReply
	return c.update(ctx, r.Thread, last.runID, req.ID, workflows.UpdateState, req, &reply)
}

// updateClosed starts a run that applies the updates and does no more.
func (c *Client) updateClosed(ctx context.Context, g *graphadapter.Graph, last *lastRun, r *UpdateRequest) error {
	if _, err := c.admit(ctx, workflows.AdmitRequest{Graph: r.Graph}); err != nil {
		return err
	}
	in := workflows.GraphInput{Graph: r.Graph, Edits: r.Updates, Within: r.Subgraph}
	_, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return err
	}
	if err := checkUpdates(in.Spec, *r); err != nil {
		return err
	}
	if r.Checkpoint != "" {
		if in.State, err = c.stateAt(ctx, g, last, r.Checkpoint); err != nil {
			return err
		}
	}
	if err := tryUpdates(g, last, in); err != nil {
		return err
	}
	return c.applied(c.launchUpdates(ctx, in, r, last))
}

// updateFirst begins a thread with updates.
func (c *Client) updateFirst(ctx context.Context, r *UpdateRequest) error {
	if err := checkStart(StartRequest{Graph: r.Graph, Thread: r.Thread}); err != nil {
		return err
	}
	reply, err := c.admit(ctx, workflows.AdmitRequest{Graph: r.Graph, WithSpec: true})
	if err != nil {
		return err
	}
	if err := checkUpdates(reply.Spec, *r); err != nil {
		return err
	}
	in := workflows.GraphInput{Graph: r.Graph, Spec: reply.Spec, Edits: r.Updates, Within: r.Subgraph}
	if err := tryUpdates(nil, &lastRun{graph: r.Graph, thread: r.Thread}, in); err != nil {
		return err
	}
	return c.applied(c.launchUpdates(ctx, in, r, nil))
}

func (c *Client) launchUpdates(ctx context.Context, in workflows.GraphInput, r *UpdateRequest, last *lastRun) (ThreadView, error) {
	v, err := c.launch(ctx, StartRequest{Graph: r.Graph, Thread: r.Thread}, in, last)
	if err != nil {
		return v, err
	}
	return c.Wait(ctx, r.Thread)
}

// applied says how a run ended that was to apply updates.
func (c *Client) applied(v ThreadView, err error) error {
	if err == nil && v.Status == StatusFailed {
		return &Error{Kind: ErrBadInput, Graph: v.Graph, Thread: v.Thread, Message: v.Error}
	}
	return err
}

// tryUpdates refuses updates that the engine would refuse, as far as that can be known without evaluating branches.
func tryUpdates(g *graphadapter.Graph, last *lastRun, in workflows.GraphInput) error {
	state := in.State
	if state == nil {
		state = pregel.Value(`{}`)
	}
	program, thread, err := readThread(in.Spec, state, reducersOf(g))
	if err != nil {
		return &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the thread's state cannot be read", Cause: err}
	}
	err = graphadapter.TryUpdates(program, thread, in.Within, in.Edits)
	if err != nil && g == nil && len(unreadable(in.Spec)) > 0 {
		return nil // the run itself will see
	}
	return refusal(last.graph, last.thread, err)
}

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
	if r.Checkpoint == "" {
		return ThreadView{}, noCheckpoint(last.graph, r.Thread, "")
	}
	if r.As == "" {
		return c.startRun(ctx, g, StartRequest{Graph: last.graph, Thread: r.Thread, Checkpoint: r.Checkpoint})
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
	thread, ok := past.At(r.Checkpoint)
	if !ok {
		return workflows.GraphInput{}, noCheckpoint(last.graph, r.Thread, r.Checkpoint)
	}
	program, _ := past.Thread()
	state, err := program.EncodeThread(thread)
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
		err := c.update(ctx, thread, last.runID, req.ID, workflows.UpdateDrain, req, nil)
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
