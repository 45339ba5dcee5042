package remote

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// InvokeRun implements runtime.Runtime.
func (c *Threads) InvokeRun(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	rest, err := c.Invoke(ctx, g, req)
	return rest, cmp.Or(err, causeOf(rest.View))
}

// Invoke is StartRun and Wait. New input for a thread is one call: a run that is open takes it as a turn, a thread that has none
// begins with it, and the reply comes when the run rests. Where this client has seen the run rest, no start goes along. A thread whose
// last run is over takes two more calls: which run that is, and what it left.
func (c *Threads) Invoke(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	ctx = tracing.Within(ctx, req.Trace)
	req.Rest = true
	rest, err := turns{c}.invoke(ctx, g, req)
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
	if err := runtime.CheckStart(req); err != nil {
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

// follow gives new input to a thread whose last run is over, as far as this client knows.
func (c turns) follow(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (runtime.Rest, error) {
	req.ID = cmp.Or(req.ID, uuid.NewString())
	for {
		last, err := c.lastRun(ctx, req.Thread)
		switch {
		case err != nil:
			return runtime.Rest{}, err
		case last == nil, last.open:
			return runtime.Resting(c.StartRun(ctx, g, req))
		case c.callOf(last.described) == req.ID:
			return c.begun(ctx, last)
		}
		if err := c.admitStart(ctx, g, &req); err != nil {
			return runtime.Rest{}, err
		}
		next, in, err := c.behind(ctx, g, req, last)
		if err != nil {
			return runtime.Rest{}, err
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
	since, whole := time.Now(), turn
	in := protocol.GraphInput{Graph: turn.Graph, ID: turn.ID, Input: turn.Input, Asked: turn.Asked, Noted: req.Served, Trace: turn.Trace}
	in.Set(*turn.Settings)
	if len(req.Input) >= longInput {
		turn.Input, turn.Begun = protocol.Input{}, true
		if req.Checked {
			w.has = listsOf(req.Input)
		}
	}
	turn.RestRequest = w.request(true)
	fields, err := memoFields(in, in.ID)
	if err != nil {
		return runtime.Rest{}, err
	}
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return runtime.Rest{}, err
	}
	options := c.startOptions(req.Thread, in.Graph, fields, has)
	options.WorkflowIDConflictPolicy, options.EnableEagerStart = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, false
	options.WorkflowExecutionErrorWhenAlreadyStarted = false
	start := c.temporal.NewWithStartWorkflowOperation(options, protocol.GraphWorkflow, in)

	soon, cancel := context.WithTimeout(ctx, doneTimeout)
	defer cancel()
	handle, err := c.temporal.UpdateWithStartWorkflow(soon, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: req.Thread, UpdateID: turn.ID, UpdateName: protocol.UpdateInvoke,
			Args: []any{turn}, WaitForStage: client.WorkflowUpdateStageCompleted}})
	run, reply := "", protocol.RestReply{}
	if err == nil {
		run = handle.RunID()
		err = c.outcome(ctx, req.Thread, handle, &reply)
	}
	return c.told(ctx, w, whole, since, run, reply, err)
}

// startBehind gives the turn with the start of the run that follows last, which is over: as startWithTurn, but by the raw call, see
// [server.execute]. Where somebody else has continued the thread meanwhile, the run that is open takes the turn. An outcome that is none, or a
// refusal, is asked for once more, as the outcome of any turn.
func (c turns) startBehind(ctx context.Context, req runtime.Start, in protocol.GraphInput, last *lastRun) (runtime.Rest, error) {
	since := time.Now()
	w, turn := c.turnOf(ctx, req)
	in.ID, in.Previous, in.Trace = turn.ID, last.runID, turn.Trace
	in.Set(*turn.Settings)
	if in.Spec == nil {
		in.Noted = req.Served
	}
	both, err := c.bothOf(ctx, w, in, last, turn)
	if err != nil {
		return runtime.Rest{}, err
	}
	if err := c.stillLast(ctx, last); err != nil {
		return runtime.Rest{}, err
	}
	soon, cancel := context.WithTimeout(ctx, doneTimeout)
	defer cancel()
	begun, err := bothTold(c.service.ExecuteMultiOperation(soon, both))
	if begun.started {
		if err := c.beganWhole(ctx, last.thread, begun.run, since); err != nil {
			return runtime.Rest{}, err
		}
	}
	if done := begun.outcome.GetSuccess(); done != nil {
		var reply protocol.RestReply
		err := c.decode(done, &reply)
		return c.told(ctx, w, turn, since, begun.run, reply, err)
	}
	if err == nil || ctx.Err() == nil && (isSilence(err) || passing(err) || isUnavailable(err)) {
		known := &lastRun{thread: last.thread, graph: turn.Graph, queue: c.cfg.TaskQueue, runID: last.runID}
		return c.turnAgain(ctx, w, known, turn, since, err)
	}
	return runtime.Rest{}, c.explainUpdate(ctx, err, last.thread)
}

// begunWith is what the server says to a start and an update at once: the run that took the update, whether the call has started it, and what
// came of the update as far as that is known by now.
type begunWith struct {
	run     string
	started bool
	outcome *updatepb.Outcome
}

// bothTold reads the reply to a start and an update. The error is that of the one of both which failed by itself.
func bothTold(reply *workflowservice.ExecuteMultiOperationResponse, err error) (begunWith, error) {
	var both *serviceerror.MultiOperationExecution
	var along *serviceerror.MultiOperationAborted // for the other's sake
	if errors.As(err, &both) {
		for _, one := range both.OperationErrors() {
			if one != nil && !errors.As(one, &along) {
				return begunWith{}, one
			}
		}
	}
	var told begunWith
	for _, r := range reply.GetResponses() {
		if start := r.GetStartWorkflow(); start != nil {
			told.run, told.started = start.GetRunId(), start.GetStarted()
		}
		told.outcome = cmp.Or(told.outcome, r.GetUpdateWorkflow().GetOutcome())
	}
	return told, err
}

func isUnavailable(err error) bool {
	var unavailable *serviceerror.Unavailable
	return errors.As(err, &unavailable)
}

// bothOf is the request for a run that follows last, with a turn.
func (c turns) bothOf(ctx context.Context, w waiter, in protocol.GraphInput, last *lastRun, turn protocol.InvokeRequest) (*workflowservice.ExecuteMultiOperationRequest, error) {
	if len(turn.Input.Value) >= longInput {
		turn.Input, turn.Begun = protocol.Input{}, true
	}
	turn.RestRequest = w.request(true)
	fields, err := memoFields(in, turn.ID)
	if err != nil {
		return nil, err
	}
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	start, err := c.runRequest(last.thread, in, last, fields, has)
	if err != nil {
		return nil, err
	}
	start.WorkflowIdConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	args, err := storage.For(c.cfg.DataConverter, c.cfg.Namespace, last.thread).ToPayloads(turn)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: in.Graph, Thread: last.thread, Message: "the input cannot be encoded", Cause: err}
	}
	update := &workflowservice.UpdateWorkflowExecutionRequest{Namespace: c.cfg.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: last.thread},
		WaitPolicy: &updatepb.WaitPolicy{LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
		Request: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: turn.ID, Identity: c.cfg.Identity},
			Input: &updatepb.Input{Name: protocol.UpdateInvoke, Args: args}}}
	return &workflowservice.ExecuteMultiOperationRequest{Namespace: c.cfg.Namespace, Operations: []*workflowservice.ExecuteMultiOperationRequest_Operation{
		{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow{StartWorkflow: start}},
		{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_UpdateWorkflow{UpdateWorkflow: update}},
	}}, nil
}

// told is what comes of a turn that was given with a start.
func (c turns) told(ctx context.Context, w waiter, turn protocol.InvokeRequest, since time.Time, run string, reply protocol.RestReply, err error) (runtime.Rest, error) {
	last := &lastRun{thread: w.thread, graph: turn.Graph, queue: c.cfg.TaskQueue}
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return w.shown(ctx, run, reply)
	case errors.As(err, &already):
		return runtime.Rest{}, errEnded
	case ctx.Err() == nil && (isSilence(err) || passing(err) || protocol.RefusedEarly(err) || protocol.WantsInput(err)):
		return c.turnAgain(ctx, w, last, turn, since, err)
	}
	return runtime.Rest{}, c.explainUpdate(ctx, err, w.thread)
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
	switch {
	case err != nil:
		return runtime.Rest{}, err
	case now == nil:
		return runtime.Rest{}, c.explain(why, last.graph, last.thread)
	case now.runID == last.runID:
		return runtime.Rest{}, errEnded // nothing has come of it
	case c.callOf(now.described) == turn.ID:
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
