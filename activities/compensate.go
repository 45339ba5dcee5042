package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/tracing"
)

// apart keeps the lease of an activity that is no task, and sorts out how it ended without a result.
type apart struct {
	*lease
	task     *host.Task // of no task: it keeps what is called, and counts
	ctx      context.Context
	held     context.Context
	free     func()
	repeated bool
}

func (n *Nodes) apart(ctx context.Context) (a *apart, err error) {
	a = &apart{ctx: ctx}
	a.lease, a.task, a.repeated, err = n.open(ctx, &graphadapter.NodeRequest{Durability: graphadapter.DurabilitySync})
	if err != nil {
		return nil, err
	}
	release := func() {}
	if !a.isGivenUp() { // else whoever asks says so
		if release, err = a.onTrial(ctx, a.task.Tally); err != nil {
			return nil, err
		}
	}
	held, free := a.hold(ctx, a.task.Tally)
	a.held, a.free = held, func() {
		free()
		release()
	}
	return a, nil
}

// isGivenUp reports whether too many workers in a row were lost with the activity.
func (a *apart) isGivenUp() bool { return a.task.Counted() >= graphadapter.MostLosses }

// stopped says why there is no result: the next execution goes on from what is recorded, unless the run wants none.
func (a *apart) stopped(err error) error {
	cause := context.Cause(a.held)
	switch {
	case a.held.Err() != nil && isCancelled(cause):
		return a.cancelledWith(a.ctx)
	case errors.Is(err, graphadapter.ErrFenced), a.held.Err() != nil && errors.Is(cause, graphadapter.ErrFenced):
		return temporal.NewApplicationError("another execution took this over", graphadapter.NodeStoppedType)
	case a.held.Err() != nil:
		_ = a.countGivenBack(context.WithoutCancel(a.ctx), a.task.Tally) // if it cannot be recorded it counts as a lost worker
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
	return a.givenBack(a.ctx, a.task.Tally, graphadapter.NodeUnservedType, err)
}

// did finds what the thread of the activity's run did outside; see Effects.
func (n *Nodes) did(ctx context.Context, graph string) (effects *past.Effects, gone int, err error) {
	a, err := n.apart(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer a.free()
	if n.byName[graph] == nil || n.effects == nil {
		return nil, 0, a.unserved(graph)
	}
	if effects, gone, err = n.effects(a.held, a.run(), graph); err != nil {
		return nil, 0, a.stopped(err)
	}
	return effects, gone, nil
}

// Standing is the activity that finds the effects to undo.
func (n *Nodes) Standing(ctx context.Context, req taskrun.StandingRequest) (taskrun.StandingReply, error) {
	effects, gone, err := n.did(ctx, req.Graph)
	if err != nil {
		return taskrun.StandingReply{}, err
	}
	reply := req.Page(effects.StandingSince(req.Rollback))
	reply.Gone = gone
	return reply, nil
}

// Rewind is the activity that finds out where a thread goes on whose effects were undone.
func (n *Nodes) Rewind(ctx context.Context, req past.RewindRequest) (past.RewindReply, error) {
	effects, _, err := n.did(ctx, req.Graph)
	if err != nil {
		return past.RewindReply{}, err
	}
	return effects.RewindReply(req), nil
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
	if a.isGivenUp() {
		return taskrun.Undecided(g, req.Compensation, taskrun.Undone{State: taskrun.UndoOpen, Calls: 1,
			Reason: fmt.Sprintf("%d workers in a row were lost while it was being undone", graphadapter.MostLosses)}), nil
	}
	effect := req.Compensation.Effect
	ctx, told := a.traces(a.held, n.tracer, req.Trace, tracing.UndoName, tracing.GraphKey.String(req.Graph), tracing.ThreadKey.String(req.Thread),
		tracing.EffectKey.String(effect.Name), tracing.EffectIDKey.String(effect.Key))
	undone, err := taskrun.Compensate(ctx, g, req.Compensation, taskrun.CompensateEnv{
		Thread: req.Thread, Context: req.Context, Journal: a.task, Lease: a,
		Settling: func(until time.Time) { a.task.Settling(a.held, req.Compensation.Effect, until) },
		Suspect:  req.Suspect || req.Compensation.Tried || a.repeated || req.OriginalRunID != a.info.WorkflowExecution.RunID,
	})
	told(string(undone.State), err)
	if err != nil {
		return taskrun.Undone{}, a.stopped(err)
	}
	return undone, nil
}

// traces begins the span of what an activity does that is no task: it is right below its run. It returns the context to do it in.
func (a *apart) traces(ctx context.Context, tracer *tracing.Tracer, place, name string, of ...attribute.KeyValue) (context.Context, func(outcome string, err error)) {
	if tracer == nil || place == "" {
		return ctx, func(string, error) {}
	}
	in := tracing.Read(place)
	ctx, end := tracer.Begin(ctx, tracing.Span{In: in, ID: in.Apart(name, ofTask(a.info).String(), a.task.Attempt()), Parent: in.Run, Name: name, Attributes: of})
	return ctx, func(outcome string, err error) {
		failed := ""
		if err != nil {
			failed, outcome = graphadapter.FailureOf("", "", err).Type, "failed"
		}
		end(failed, tracing.OutcomeKey.String(outcome))
	}
}
