package remote

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// InvokeRun implements runtime.Runtime.
func (c *Threads) InvokeRun(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	rest, err := c.Invoke(ctx, g, req)
	return rest, cmp.Or(err, causeOf(rest.View))
}

// Invoke is StartRun and Wait. New input for a thread is one call: a run that is open takes it as a turn, a thread that has none
// begins with it, and the reply comes when the run rests. Where this client has seen the run rest, no start goes along. A thread whose
// last run is over takes more calls, as its state is needed.
func (c *Threads) Invoke(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	ctx = tracing.Within(ctx, req.Trace)
	req.Rest = true
	rest, err := turns{c}.invoke(ctx, g, req)
	if errors.Is(err, errAborted) { // the run has begun with the input: how it ended is the outcome
		rest, err = runtime.Resting(c.Wait(ctx, req.Thread))
	}
	if err == nil && rest.Status == thread.StatusRunning {
		rest, err = runtime.Resting(c.Wait(ctx, rest.Thread))
	}
	if err == nil && rest.Failure != nil && rest.Failure.Type == protocol.ErrTypeBadInput {
		return runtime.Rest{}, &thread.Error{Kind: thread.ErrBadInput, Graph: rest.Graph, Thread: rest.Thread, Message: rest.Failure.Message}
	}
	return rest, err
}

// turns give threads new input, and wait until they rest.
type turns struct{ *Threads }

func (c turns) invoke(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	if req.Input == nil || req.NewThread || req.Checkpoint != "" || req.Resume != nil || req.Control != nil || c.cfg.Identity != "" {
		return runtime.Resting(c.StartRun(ctx, g, req))
	}
	if err := checkStart(ctx, c.Threads, req); err != nil {
		return runtime.Rest{}, err
	}
	if c.ended.within(req.Thread, rememberedFor) {
		return c.follow(ctx, g, req)
	}
	if err := c.admitStart(ctx, g, &req); err != nil {
		return runtime.Rest{}, err
	}
	if here(c).may(req) {
		view, err := here(c).start(ctx, req)
		if !errors.Is(err, errNotNew) {
			return runtime.Resting(view, err)
		}
	}
	rest, err := c.give(ctx, req)
	if errors.Is(err, errEnded) {
		c.ended.note(req.Thread, true)
		return c.follow(ctx, g, req)
	}
	return rest, err
}

// follow gives new input to a thread whose last run is over, as far as this client knows. A long one does not go along twice.
func (c turns) follow(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	req.ID = cmp.Or(req.ID, uuid.NewString())
	for {
		last, err := c.lastRun(ctx, req.Thread)
		switch {
		case err != nil:
			return runtime.Rest{}, err
		case last == nil, last.open:
			return runtime.Resting(c.StartRun(ctx, g, req))
		case len(req.Input) >= longInput:
			return runtime.Resting(c.StartRun(ctx, g, req))
		}
		if err := c.admitStart(ctx, g, &req); err != nil {
			return runtime.Rest{}, err
		}
		next, in, err := c.behind(ctx, g, req, last)
		if err != nil {
			return runtime.Rest{}, err
		}
		switch taken, err := c.wasTaken(ctx, req.ID, last, in); {
		case err != nil:
			return runtime.Rest{}, err
		case taken:
			return c.begun(ctx, last)
		}
		rest, err := c.startBehind(ctx, next, in, last)
		if !errors.Is(err, errEnded) {
			return rest, err
		}
		select {
		case <-ctx.Done():
			return runtime.Rest{}, ctx.Err()
		case <-time.After(updatePause):
		}
	}
}

// give gives a thread new input, and returns when the run rests. It fails with errEnded when the thread's last run is over.
func (c turns) give(ctx context.Context, req runtime.Start) (runtime.Rest, error) {
	w, turn := c.turnOf(ctx, req)
	if c.open.within(req.Thread, rememberedFor) {
		return c.turn(ctx, w, &lastRun{thread: req.Thread, graph: req.Graph, queue: c.cfg.TaskQueue}, turn)
	}
	return c.startWithTurn(ctx, req, w, turn)
}

// turnOf is a request as a turn, and who waits for what comes of it.
func (c turns) turnOf(ctx context.Context, req runtime.Start) (waiter, protocol.InvokeRequest) {
	turn := protocol.InvokeRequest{ID: cmp.Or(req.ID, uuid.NewString()), Graph: req.Graph, Input: protocol.Input(runtime.InputOf(req)),
		Settings: runtime.SettingsOf(req), Asked: runtime.AskedOf(req.By, req.Reason, req.Token), Trace: tracing.Carried(ctx)}
	w := c.waiterFor(req.Thread)
	w.input = turn.Input.Value
	return w, turn
}

// turn gives the turn to an open run.
func (c turns) turn(ctx context.Context, w waiter, last *lastRun, turn protocol.InvokeRequest) (runtime.Rest, error) {
	turn.RestRequest = w.request(true)
	var reply protocol.RestReply
	run, err := c.updateRun(ctx, ctx, last, turn.ID, protocol.UpdateInvoke, turn, &reply)
	if err != nil {
		return runtime.Rest{}, err
	}
	return w.shown(ctx, run, reply)
}

// startWithTurn gives the turn by update-with-start: to an open run that this client does not know of, or to a new one. The start
// carries the input, and the update has the same id as the input: a run that has begun with it is given nothing twice, and a caller
// who is lost between the two loses nothing. A long input travels with the start alone: a run that was open already asks for it.
func (c turns) startWithTurn(ctx context.Context, req runtime.Start, w waiter, turn protocol.InvokeRequest) (runtime.Rest, error) {
	defer func() { c.changed.note(req.Thread, true) }()
	since, input := time.Now(), turn.Input
	in := protocol.GraphInput{Graph: turn.Graph, ID: turn.ID, Input: input, Asked: turn.Asked, Trace: turn.Trace}
	in.Set(*turn.Settings)
	if len(req.Input) >= longInput {
		turn.Input, turn.Begun = protocol.Input{}, true
		if req.Checked {
			w.has = listsOf(req.Input)
		}
	}
	turn.RestRequest = w.request(true)
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return runtime.Rest{}, err
	}
	options := c.startOptions(req.Thread, in.Graph, graphMemo(in.Graph, has), has)
	options.WorkflowIDConflictPolicy, options.EnableEagerStart = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, false
	options.WorkflowExecutionErrorWhenAlreadyStarted = false
	start := c.temporal.NewWithStartWorkflowOperation(options, protocol.GraphWorkflow, in)

	soon, cancel := context.WithTimeout(ctx, doneTimeout)
	defer cancel()
	handle, err := c.temporal.UpdateWithStartWorkflow(soon, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: req.Thread, UpdateID: turn.ID, UpdateName: protocol.UpdateInvoke,
			Args: []any{turn}, WaitForStage: client.WorkflowUpdateStageCompleted}})
	last, run, reply := &lastRun{thread: req.Thread, graph: req.Graph, queue: c.cfg.TaskQueue}, "", protocol.RestReply{}
	if err == nil {
		run = handle.RunID()
		err = c.outcome(ctx, req.Thread, handle, &reply)
	}
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return runtime.Rest{}, errEnded
	case err != nil && ctx.Err() == nil && (isSilence(err) || passing(err) || protocol.RefusedEarly(err) || protocol.WantsInput(err)):
		turn.Input, turn.Begun = input, false
		return c.turnAgain(ctx, w, last, turn, since, err)
	default:
		err = c.explainUpdate(ctx, err, req.Thread)
	}
	if err != nil {
		return runtime.Rest{}, err
	}
	return w.shown(ctx, run, reply)
}

// startBehind starts the run that follows last, which is over, with a turn as its input, and gives it the turn as well, under the same id: the
// run that has begun with it waits until it rests, and where somebody else has continued the thread the run that is open takes it.
//
// It is no update-with-start. That the server repeats by itself where another call has come first and its run is over by then, and a run
// that has followed meanwhile would be passed over: what its turns said would be lost.
func (c turns) startBehind(ctx context.Context, req runtime.Start, in protocol.GraphInput, last *lastRun) (runtime.Rest, error) {
	w, turn := c.turnOf(ctx, req)
	run, err := c.startExecution(ctx, req.Thread, launchInput(ctx, req, in, last), last, turn.ID, false)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		err = c.held(ctx, req.Thread)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return runtime.Rest{}, ctx.Err()
	case err != nil:
		return runtime.Rest{}, c.explain(err, req.Graph, req.Thread)
	}
	now := &lastRun{thread: req.Thread, graph: req.Graph, queue: c.cfg.TaskQueue}
	rest, err := c.turn(ctx, w, now, turn)
	if run == "" || !errors.Is(err, errEnded) && !unanswered(err) {
		return rest, err
	}
	switch ours, lookErr := c.startedBy(ctx, req.Thread, run, turn.ID); {
	case lookErr != nil || !ours:
		return rest, cmp.Or(lookErr, err)
	case unanswered(err):
		return rest, notBegun(err, now)
	}
	// It was over before the turn came.
	return runtime.Rest{View: thread.View{Thread: req.Thread, Graph: req.Graph, RunID: run, Status: thread.StatusRunning}}, nil
}

// longInput is the size from which an input is not sent twice, in bytes.
const longInput = 16 << 10

// listsOf are the long lists of an input that its graph takes: what a new thread has of them in the end goes on behind them.
func listsOf(input pregel.Value) map[string]*pregel.HadList {
	lists := map[string]*pregel.HadList{}
	for name, v := range protocol.GivenBy(input) {
		if had := pregel.HadOf(pregel.Hold(v), nil); had != nil {
			lists[name] = had
		}
	}
	return lists
}

// turnAgain goes on with a turn whose call had no outcome, because of why: it takes longer, or nobody takes it. A run that the call
// has started has the input, and says so by the id that it was started under; an open run is given the same turn again.
func (c turns) turnAgain(ctx context.Context, w waiter, last *lastRun, turn protocol.InvokeRequest, since time.Time, why error) (runtime.Rest, error) {
	now, err := c.lastRun(ctx, last.thread)
	if err != nil {
		return runtime.Rest{}, err
	}
	if now == nil {
		return runtime.Rest{}, c.explain(why, last.graph, last.thread)
	}
	if protocol.WantsInput(why) { // so it has not begun with this turn
		return c.turn(ctx, w, last, turn)
	}
	in, err := startedWith(ctx, c.server, now.described.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return runtime.Rest{}, c.explain(err, last.graph, last.thread)
	}
	if in.ID == turn.ID {
		if err := c.beganWhole(ctx, now.thread, now.runID, since); err != nil {
			return runtime.Rest{}, err
		}
		return c.begun(ctx, now)
	}
	return c.turn(ctx, w, last, turn)
}

// begun is the view of a run that this call has started, when it rests. A run that nobody begins is waited for as long as there are
// workers that may.
func (c turns) begun(ctx context.Context, now *lastRun) (runtime.Rest, error) {
	if !now.open {
		return runtime.Rest{View: goingOn(c.viewOf(now))}, nil
	}
	var reply protocol.RestReply
	w := c.waiterFor(now.thread)
	run, err := c.updateRun(ctx, ctx, now, newCall(), protocol.UpdateRest, w.request(true), &reply)
	switch {
	case err == nil:
		return w.shown(ctx, run, reply)
	case unanswered(err) || ctx.Err() != nil:
		return runtime.Rest{}, notBegun(err, now)
	}
	return runtime.Rest{View: goingOn(c.viewOf(now))}, nil // too many wait, or it has just ended: its history tells
}
