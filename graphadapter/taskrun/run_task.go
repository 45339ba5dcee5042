package taskrun

import (
	"context"
	"errors"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// RunTask runs one task to its outcome.
func RunTask(ctx context.Context, g *graphadapter.Graph, task *pregel.Task, env Env) pregel.Outcome {
	done := make(chan pregel.Outcome, 1)
	e := execution{ctx: ctx, graph: g, task: task, env: env, done: done}
	go func() {
		growStack(0)
		if o, here := e.run(); here {
			done <- o
		}
	}()
	return <-done
}

// execution takes one task to its outcome: attempt by attempt, as the node's retry policy says. A task whose time is over
// before it begins does not run.
type execution struct {
	ctx   context.Context     // the superstep's
	watch *deadlineWatch      // over ctx; nil for none
	graph *graphadapter.Graph // the root
	task  *pregel.Task
	env   Env

	// An outcome that is come to elsewhere (see [TaskRun.stay]) is for the driver, else for done.
	driver *driver
	alone  bool // see driver.perform
	done   chan<- pregel.Outcome

	tries    *Attempts
	policies []graphadapter.RetryPolicy
	last     pregel.Outcome    // of the attempts that failed
	before   []pregel.Emission // of those: what was streamed is not taken back

	// The attempt under way.
	under   *TaskRun
	bounded context.Context
}

// run runs the task. It reports false when the outcome comes, or came, elsewhere.
func (e *execution) run() (o pregel.Outcome, here bool) {
	if e.ctx.Err() != nil {
		return pregel.Outcome{Error: cancelled(e.ctx, e.graph, e.task)}, true
	}
	if e.tries = e.env.Attempts; e.tries == nil {
		_, between, err := graphadapter.DecodeCarryOver(e.task.Ledger)
		if err != nil {
			return pregel.Outcome{Error: graphadapter.FailureOf(e.graph.NameOf(e.task), e.task.Node, err)}, true
		}
		e.tries = &Attempts{Kept: between}
	}
	e.policies, _ = e.graph.RetryPolicies(e.task) // without the node nothing runs, and nothing is repeated
	if e.task.Retry != nil {
		return retrySubgraph(e.ctx, e.graph, e.task, e.policies, e.tries), true
	}
	e.last = pregel.Outcome{Emitted: e.tries.CarryOver().Emitted}
	return e.goOn()
}

// goOn makes attempts until one is the last.
func (e *execution) goOn() (o pregel.Outcome, here bool) {
	for e.tries.pause(e.ctx) {
		r, here, err := e.attempt()
		if !here {
			return pregel.Outcome{}, false
		}
		if o, done := e.ended(r, err); done {
			return o, true
		}
	}
	e.last.Error = cancelled(e.ctx, e.graph, e.task)
	return e.last, true
}

// attempt makes one attempt. The error is that it could not begin.
func (e *execution) attempt() (r result, here bool, err error) {
	between := e.tries.CarryOver()
	e.env.Attempt, e.before = between.Failures+1, between.Emitted
	if e.under, err = newTaskRun(e.graph, e.task, &e.env); err != nil {
		return result{}, true, err
	}
	e.under.reset()
	e.bounded = e.under.bound(e.ctx)
	r, here = e.under.runInline(e.bounded, e, e.watch)
	return r, here, nil
}

// resume implements resumer.
func (e *execution) resume(r result) {
	o, here := e.ended(r, nil)
	if !here {
		o, here = e.goOn()
	}
	switch {
	case !here:
	case e.driver != nil:
		e.driver.late(e, o)
	default:
		e.done <- o
	}
}

// ended takes in how an attempt ended, or why it could not begin. done says that it was the last.
func (e *execution) ended(r result, err error) (o pregel.Outcome, done bool) {
	if err == nil {
		e.under.close()
		o, err = e.under.conclude(e.ctx, e.bounded, r)
		e.under.unbound()
	}
	o.Emitted = append(slices.Clip(e.before), o.Emitted...)
	switch {
	case err == nil && o.Yielded:
		return withBefore(o, e.before), true
	case err == nil:
		return o, true
	}
	wait, again := graphadapter.RetryAfter(e.policies, e.env.Attempt, err)
	if again && e.ctx.Err() == nil {
		e.last = pregel.Outcome{Emitted: KeepEmitted(o.Emitted, MaxEmittedTotal), Ledger: o.Ledger, Kept: o.Kept}
		e.tries.failed(e.ctx, wait, e.last.Emitted)
		return pregel.Outcome{}, false
	}
	o.Error = graphadapter.FailureOf(e.graph.NameOf(e.task), e.task.Node, err)
	if errors.Is(err, graphadapter.ErrYielded) {
		o.Error = stopped(e.graph, e.task, err)
	}
	if e.ctx.Err() != nil {
		o.Error = cancelled(e.ctx, e.graph, e.task)
	}
	return o, true
}

// retrySubgraph answers whether a failed subgraph is to be run on, after the wait that its node's policy asks for.
func retrySubgraph(ctx context.Context, g *graphadapter.Graph, task *pregel.Task, policies []graphadapter.RetryPolicy, tries *Attempts) pregel.Outcome {
	if tries.number() == 1 {
		wait, again := graphadapter.RetryAfter(policies, task.Attempt, task.Retry)
		if !again {
			return pregel.Outcome{}
		}
		tries.failed(ctx, wait, nil)
	}
	if !tries.pause(ctx) {
		return pregel.Outcome{Error: cancelled(ctx, g, task)}
	}
	return pregel.Outcome{Again: true}
}

// withBefore is the outcome of a task that was given back, which keeps what its failed attempts streamed.
func withBefore(o pregel.Outcome, emitted []pregel.Emission) pregel.Outcome {
	entries, between, err := graphadapter.DecodeCarryOver(o.Ledger)
	if err != nil {
		return o
	}
	between.Emitted = emitted
	if stored, err := graphadapter.EncodeCarryOver(entries, between); err == nil {
		o.Ledger = stored
	}
	return o
}

func cancelled(ctx context.Context, g *graphadapter.Graph, task *pregel.Task) *pregel.NodeError {
	return stopped(g, task, context.Cause(ctx))
}

// stopped is the end of a task that was stopped from outside: it runs again when its thread is continued.
func stopped(g *graphadapter.Graph, task *pregel.Task, why error) *pregel.NodeError {
	return &pregel.NodeError{Type: pregel.CancelledType, Graph: g.NameOf(task), Node: task.Node,
		Message: graphadapter.Bounded("cancelled: " + why.Error())}
}

// pause waits; it reports false when ctx ended first.
func pause(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
