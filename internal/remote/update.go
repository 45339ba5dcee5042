package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// UpdateState implements runtime.Runtime.
func (c *Threads) UpdateState(ctx context.Context, g *graphadapter.Graph, r thread.UpdateRequest) (thread.StateView, error) {
	if len(r.ID) > thread.MaxID {
		return thread.StateView{}, &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread,
			Message: fmt.Sprintf("a request's id has at most %d bytes, this one has %d", thread.MaxID, len(r.ID))}
	}
	given := r.ID != ""
	if !given {
		r.ID = uuid.NewString()
	}
	for first := true; ; first = false {
		before, err := c.updateOnceMore(ctx, g, &r, given && first)
		if errors.Is(err, errEnded) {
			continue
		}
		if err != nil {
			return thread.StateView{}, err
		}
		state, err := c.StateOf(ctx, g, thread.StateRequest{Thread: r.Thread})
		state.Repeated = before && first // what was taken since is what this call has sent
		return state, err
	}
}

// updateOnceMore updates the run that is the thread's last at this moment. before says that the update had been taken before this; look
// that an open run is asked for that first: the server gives the outcome of an update again without a word.
func (c *Threads) updateOnceMore(ctx context.Context, g *graphadapter.Graph, r *thread.UpdateRequest, look bool) (before bool, err error) {
	last, err := c.lastRun(ctx, r.Thread)
	switch {
	case err != nil:
		return false, err
	case last == nil && (r.Checkpoint != "" || r.Graph == ""):
		return false, noThread(r.Thread)
	case last == nil:
		return false, c.updateFirst(ctx, r)
	case r.Graph != "" && last.graph != r.Graph:
		return false, &thread.Error{Kind: thread.ErrBadInput, Graph: r.Graph, Thread: r.Thread,
			Message: fmt.Sprintf("thread %q belongs to graph %q, not to %q", r.Thread, last.graph, r.Graph)}
	}
	r.Graph, g = last.graph, c.graphOr(g, last)
	if c.callOf(last.described) == r.ID { // this very request began that run
		return true, c.applied(c.Wait(ctx, r.Thread))
	}
	if !last.open || look {
		if took, err := c.took(ctx, last, r.ID); took || err != nil {
			return took, err
		}
	}
	if last.open {
		return false, c.updateOpen(ctx, g, last, r)
	}
	return false, c.updateClosed(ctx, g, last, r)
}

// took reports whether a run applied the update of that id before: one that has ended may have been left nothing to do by it.
// An error is what the run said to it.
func (c *Threads) took(ctx context.Context, last *lastRun, id string) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := c.temporal.GetWorkflowUpdateHandle(client.GetWorkflowUpdateHandleOptions{
		WorkflowID: last.thread, RunID: last.runID, UpdateID: id}).Get(bounded, nil)
	var refused *temporal.ApplicationError
	var unknown *serviceerror.NotFound
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &refused): // it changed nothing
		return false, nil
	case errors.As(err, &unknown) && last.first == last.runID:
		return false, nil
	case errors.As(err, &unknown):
		return c.tookEarlier(ctx, last, id)
	case isSilence(err):
		err = c.silence(ctx, last)
	}
	return false, c.explainUpdate(ctx, err, last.thread)
}

// tookEarlier reports whether a run that was continued as this one applied the update.
func (c *Threads) tookEarlier(ctx context.Context, last *lastRun, id string) (bool, error) {
	in, err := c.inputOf(ctx, last.thread, last.runID)
	if err != nil || in.Carried == nil {
		return false, err
	}
	return slices.ContainsFunc(in.Life.Taken, func(t life.Taken) bool { return t.Command == protocol.UpdateState && t.ID == id }), nil
}

// updateOpen lets the run apply the updates while it stands still.
func (c *Threads) updateOpen(ctx context.Context, g *graphadapter.Graph, last *lastRun, r *thread.UpdateRequest) error {
	var spec *pregel.Spec
	if err := c.query(ctx, last, protocol.QueryGraph, &spec); err != nil {
		return err
	}
	if err := completeUpdates(spec, r); err != nil {
		return err
	}
	req := protocol.UpdateStateRequest{ID: r.ID, Edits: r.Updates, Within: r.Subgraph, Asked: runtime.AskedOf(r.By, r.Reason, r.Token)}
	if r.Checkpoint != "" {
		at, err := c.stateAt(ctx, g, last, r.Checkpoint, pregel.ForEdit)
		if err != nil {
			return err
		}
		req.State = at.state
	}
	if err := c.misfit(last, req.Misfit(c.maxState())); err != nil {
		return err
	}
	var reply protocol.UpdateStateReply
	return c.update(ctx, last, req.ID, protocol.UpdateState, req, &reply)
}

// updateClosed starts a run that applies the updates and does no more.
func (c *Threads) updateClosed(ctx context.Context, g *graphadapter.Graph, last *lastRun, r *thread.UpdateRequest) error {
	in := protocol.GraphInput{Graph: r.Graph, Within: r.Subgraph, Replay: r.Checkpoint != "", Asked: runtime.AskedOf(r.By, r.Reason, r.Token)}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return err
	}
	in.Replay = false
	if err := completeUpdates(in.Spec, r); err != nil {
		return err
	}
	in.Edits = r.Updates
	if r.Checkpoint != "" {
		at, err := c.stateAt(ctx, g, last, r.Checkpoint, pregel.ForEdit)
		if err != nil {
			return err
		}
		in.State, in.Newest = at.state, in.State // the run may refuse, and then stands where it stood
	}
	whole := protocol.UpdateStateRequest{Edits: in.Edits, Within: in.Within, State: in.State}
	if err := c.misfit(last, whole.Misfit(c.maxState())); err != nil {
		return err
	}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: r.Graph, Edits: r.Updates, Within: r.Subgraph,
		Control: controlCheck(last, approval.Control{Op: approval.OpUpdate}, runtime.Asker{By: r.By, Token: r.Token})}); err != nil {
		return err
	}
	if err := tryUpdates(g, last, in); err != nil {
		return err
	}
	return c.applied(c.launchUpdates(ctx, in, r, last, settings))
}

// completeUpdates makes a request's Values its one update, and refuses updates that no graph of that spec could take.
func completeUpdates(spec *pregel.Spec, r *thread.UpdateRequest) error {
	if len(r.Updates) == 0 && (r.Values != nil || r.AsNode != "") {
		within, err := runtime.UpdatedSpec(spec, *r)
		if err != nil {
			return err
		}
		u := graphadapter.StateUpdate{AsNode: r.AsNode}
		switch {
		case r.AsNode == pregel.AsInput:
			u.Input = pregel.Value(r.Values)
		case r.Values != nil:
			u.Values, err = runtime.NamedWrites(within, pregel.Value(r.Values))
		}
		if err != nil {
			return &thread.Error{Kind: thread.ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: "the update cannot be taken", Cause: err}
		}
		r.Updates = [][]graphadapter.StateUpdate{{u}}
	}
	return runtime.CheckUpdates(spec, *r)
}

// admitUpdates has a worker check the updates' values: nothing is stored when they do not fit.
func (c *Threads) admitUpdates(ctx context.Context, r *thread.UpdateRequest) error {
	_, err := c.admit(ctx, protocol.AdmitRequest{Graph: r.Graph, Edits: r.Updates, Within: r.Subgraph})
	return err
}

// updateFirst begins a thread with updates.
func (c *Threads) updateFirst(ctx context.Context, r *thread.UpdateRequest) error {
	if err := runtime.CheckStart(runtime.Start{StartRequest: thread.StartRequest{Graph: r.Graph, Thread: r.Thread}}); err != nil {
		return err
	}
	reply, err := c.admit(ctx, protocol.AdmitRequest{Graph: r.Graph, WithSpec: true})
	if err != nil {
		return err
	}
	if err := completeUpdates(reply.Spec, r); err != nil {
		return err
	}
	if err := c.admitUpdates(ctx, r); err != nil {
		return err
	}
	in := protocol.GraphInput{Graph: r.Graph, Spec: reply.Spec, Edits: r.Updates, Within: r.Subgraph,
		Asked: runtime.AskedOf(r.By, r.Reason, r.Token)}
	if err := tryUpdates(nil, &lastRun{graph: r.Graph, thread: r.Thread}, in); err != nil {
		return err
	}
	return c.applied(c.launchUpdates(ctx, in, r, nil, nil))
}

// launchUpdates starts a run that applies updates, with the settings of the thread's last run: as in a run that is open.
func (c *Threads) launchUpdates(ctx context.Context, in protocol.GraphInput, r *thread.UpdateRequest, last *lastRun, s *protocol.Settings) (thread.View, error) {
	req := runtime.Start{StartRequest: thread.StartRequest{Graph: r.Graph, Thread: r.Thread}}
	req.Restore(s)
	v, err := c.launchAs(ctx, r.ID, req, in, last)
	if err != nil {
		return v, err
	}
	return c.Wait(ctx, r.Thread)
}

// applied says how a run ended that was to apply updates.
func (c *Threads) applied(v thread.View, err error) error {
	if err == nil && v.Status.Failed() {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: v.Graph, Thread: v.Thread, Message: v.Error}
	}
	return err
}

// tryUpdates refuses updates that the engine would refuse, as far as that can be known without evaluating branches.
func tryUpdates(g *graphadapter.Graph, last *lastRun, in protocol.GraphInput) error {
	state := in.State
	if state == nil {
		state = pregel.Value(`{}`)
	}
	program, th, err := runtime.ReadThread(in.Spec, state, runtime.ReducersOf(g))
	if err != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the thread's state cannot be read", Cause: err}
	}
	err = taskrun.TryUpdates(program, th, in.Within, in.Edits)
	if err != nil && g == nil && len(runtime.Unreadable(in.Spec)) > 0 {
		return nil // the run itself will see
	}
	return runtime.Refusal(last.graph, last.thread, err)
}

// maxState bounds the state that this client can send along.
func (c *server) maxState() int {
	if c.cfg.Storage != nil {
		return protocol.MaxStoredBytes
	}
	return protocol.MaxStateBytes
}

// misfit refuses what no run would take; nil for no problem.
func (c *server) misfit(of *lastRun, problem string) error {
	if problem == "" {
		return nil
	}
	return &thread.Error{Kind: thread.ErrBadInput, Graph: of.graph, Thread: of.thread, Message: problem}
}
