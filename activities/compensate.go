package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/taskrun"
)

// Effects reads what a thread did outside, from a run back to where it last finished, or as far as the server goes. gone
// counts the runs before that which the server has no more.
type Effects func(ctx context.Context, run Run, graph string) (found *past.Effects, gone int, err error)

// WithEffects makes the worker find what the threads of its graphs did; without it their runs cannot undo effects. It
// returns n.
func (n *Nodes) WithEffects(e Effects) *Nodes {
	n.effects = e
	return n
}

// apart keeps the lease of an activity that is no task, and sorts out how it ended without a result.
type apart struct {
	owner *owner
	ctx   context.Context
	held  context.Context
	free  func()
}

func (n *Nodes) apart(ctx context.Context) (*apart, error) {
	var kept graphadapter.NodeProgress
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &kept); err != nil {
			return nil, fmt.Errorf("the progress of an earlier execution cannot be read: %w", err)
		}
	}
	o, err := newOwner(n.client, activity.GetInfo(ctx), graphadapter.NodeRequest{Durability: graphadapter.DurabilitySync}, kept)
	if err != nil {
		return nil, err
	}
	a := &apart{owner: o, ctx: ctx}
	if o.workersLost() >= graphadapter.MostLosses { // whoever asks says so
		a.held, a.free = o.hold(ctx)
		return a, nil
	}
	release, err := o.onTrial(ctx)
	if err != nil {
		return nil, err
	}
	held, free := o.hold(ctx)
	a.held, a.free = held, func() {
		free()
		release()
	}
	return a, nil
}

// stopped says why there is no result: the next execution goes on from what is recorded, unless the run wants none.
func (a *apart) stopped(err error) error {
	cause := context.Cause(a.held)
	switch {
	case a.held.Err() != nil && isCancelled(cause):
		// The SDK does not know of the request, which came as the reply to a heartbeat of our own.
		stopped := temporal.NewCanceledError()
		if err := a.owner.client.CompleteActivity(a.ctx, a.owner.info.TaskToken, nil, stopped); err != nil {
			return stopped
		}
		return activity.ErrResultPending
	case errors.Is(err, graphadapter.ErrFenced), a.held.Err() != nil && errors.Is(cause, graphadapter.ErrFenced):
		return temporal.NewApplicationError("another execution took this over", graphadapter.NodeStoppedType)
	case a.held.Err() != nil:
		_ = a.owner.countGivenBack(context.WithoutCancel(a.ctx)) // if it cannot be recorded it counts as a lost worker
		return temporal.NewApplicationError("this worker stops; another one goes on", graphadapter.NodeStoppedType)
	}
	return err
}

// unserved gives the activity back, for a worker that has the graph.
func (a *apart) unserved(graph string) error {
	return a.elsewhere(fmt.Errorf("this worker does not serve the graph %q", graph))
}

// elsewhere gives the activity back, for another worker.
func (a *apart) elsewhere(err error) error {
	if recorded := a.owner.countGivenBack(a.ctx); recorded != nil {
		err = errors.Join(err, recorded)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), graphadapter.NodeUnservedType, err)
}

// Standing is the activity that finds the effects to undo.
func (n *Nodes) Standing(ctx context.Context, req taskrun.StandingRequest) (taskrun.StandingReply, error) {
	a, err := n.apart(ctx)
	if err != nil {
		return taskrun.StandingReply{}, err
	}
	defer a.free()
	if n.byName[req.Graph] == nil || n.effects == nil {
		return taskrun.StandingReply{}, a.unserved(req.Graph)
	}
	info := a.owner.info
	effects, gone, err := n.effects(a.held, Run{info.Namespace, info.WorkflowExecution.ID, info.WorkflowExecution.RunID}, req.Graph)
	if err != nil {
		return taskrun.StandingReply{}, a.stopped(err)
	}
	reply := req.Page(effects.Standing())
	reply.Gone = gone
	return reply, nil
}

// Rewind is the activity that finds out where a thread goes on whose effects were undone.
func (n *Nodes) Rewind(ctx context.Context, req past.RewindRequest) (past.RewindReply, error) {
	a, err := n.apart(ctx)
	if err != nil {
		return past.RewindReply{}, err
	}
	defer a.free()
	if n.byName[req.Graph] == nil || n.effects == nil {
		return past.RewindReply{}, a.unserved(req.Graph)
	}
	info := a.owner.info
	effects, _, err := n.effects(a.held, Run{info.Namespace, info.WorkflowExecution.ID, info.WorkflowExecution.RunID}, req.Graph)
	if err != nil {
		return past.RewindReply{}, a.stopped(err)
	}
	return effects.RewindReply(), nil
}

// Compensate is the activity that undoes one effect. What it calls is stored before it is called, so whoever goes on
// after a lost worker looks up first. It fails only to be repeated, or as cancelled.
func (n *Nodes) Compensate(ctx context.Context, req taskrun.CompensateRequest) (taskrun.Undone, error) {
	a, err := n.apart(ctx)
	if err != nil {
		return taskrun.Undone{}, err
	}
	defer a.free()
	g := n.byName[req.Graph]
	if g == nil {
		return taskrun.Undone{}, a.unserved(req.Graph)
	}
	if a.owner.workersLost() >= graphadapter.MostLosses {
		return taskrun.Undecided(g, req.Compensation, taskrun.Undone{State: taskrun.UndoOpen, Calls: 1,
			Reason: fmt.Sprintf("%d workers in a row were lost while it was being undone", graphadapter.MostLosses)}), nil
	}
	info := a.owner.info
	undone, err := taskrun.Compensate(a.held, g, req.Compensation, taskrun.CompensateEnv{
		Thread: req.Thread, Context: req.Context, Journal: a.owner, Lease: a.owner,
		Settling: func(until time.Time) { a.owner.settling(a.held, req.Compensation.Effect, until) },
		Suspect: req.Suspect || req.Compensation.Tried || info.Attempt > 1 || activity.HasHeartbeatDetails(ctx) ||
			req.OriginalRunID != info.WorkflowExecution.RunID,
	})
	if err != nil {
		return taskrun.Undone{}, a.stopped(err)
	}
	return undone, nil
}
