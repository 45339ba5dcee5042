package taskrun

import (
	"context"
	"errors"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/stackroom"
)

// ErrReturned says that a task is given back before its next attempt: the wait is not this process's, or the process was
// asked to leave. The task's [Outbox] has what the next execution needs.
var ErrReturned = errors.New("superstep: the task is given back before its next attempt")

// RunTask runs one task to its outcome: attempt by attempt, as the node's retry policy says, each within its timeouts. An
// outcome with an Error ends the task, or tells that it was stopped.
//
// why is what is behind such an Error, for a host that goes by it: [ErrReturned], the error of the last attempt (see
// [RunAttempt]), the cause of ctx, or an [*UnservedError] of a task with Retry whose policies this process does not have.
// It is nil without one.
func RunTask(ctx context.Context, g *graphadapter.Graph, task *pregel.Task, env Env) (out pregel.Outcome, why error) {
	done := make(waiting, 1)
	e := execution{ctx: ctx, graph: g, task: task, env: env, waits: done}
	go func() {
		stackroom.Grow()
		if o, here := e.run(); here {
			done <- o
		}
	}()
	out = <-done
	return out, e.why
}

// execution takes one task to its outcome. A task whose time is over before it begins does not run.
type execution struct {
	ctx   context.Context     // the superstep's
	watch *deadlineWatch      // over ctx; nil for none
	graph *graphadapter.Graph // the root
	task  *pregel.Task
	env   Env
	why   error // see RunTask

	waits waiter // for an outcome that is come to elsewhere: see inlineRun
	alone bool   // nobody waits for the outcome where the task began

	policies []graphadapter.RetryPolicy
	last     pregel.Outcome // of the attempts that failed
	began    time.Time      // of a task that is metered

	// The attempt under way.
	under   *TaskRun
	bounded context.Context
	span    func(outcome, failed string) // ends its span; nil for none
}

// run runs the task. It reports false when the outcome comes, or came, elsewhere.
func (e *execution) run() (o pregel.Outcome, here bool) {
	if e.task.Metered {
		e.began = time.Now()
	}
	o, here = e.begin()
	return e.metered(o), here
}

func (e *execution) begin() (o pregel.Outcome, here bool) {
	if e.env.Outbox == nil {
		if e.env.Outbox, e.why = OpenOutbox(e.task, nil, nil, ""); e.why != nil {
			return pregel.Outcome{Error: graphadapter.FailureOf(e.graph.NameOf(e.task), e.task.Node, e.why)}, true
		}
	}
	e.last.Emitted = e.env.Outbox.CarryOver().Emitted
	if e.ctx.Err() != nil {
		return e.stopped(), true
	}
	var unserved error
	e.policies, unserved = e.graph.RetryPolicies(e.task) // without the node nothing runs, and nothing is repeated
	if e.task.Retry != nil {
		e.why = unserved
		return e.retrySubgraph(), true
	}
	return e.goOn()
}

// goOn makes attempts until one is the last.
func (e *execution) goOn() (o pregel.Outcome, here bool) {
	for e.env.Outbox.pause(e.ctx) {
		r, here, err := e.attempt()
		if !here {
			return pregel.Outcome{}, false
		}
		if o, done := e.ended(r, err); done {
			return o, true
		}
	}
	return e.stopped(), true
}

// stopped is the end of a task between two attempts, or before the first.
func (e *execution) stopped() pregel.Outcome {
	if e.why = ErrReturned; !e.env.Outbox.IsReturned() {
		e.why = context.Cause(e.ctx)
	}
	if e.last.Ledger == nil && e.env.outer == nil && e.env.Outbox.HasNews() { // of an execution before
		e.last.Ledger, e.last.Kept = e.env.Outbox.Ledger(), KeptOf(e.task, e.env.Outbox.Entries())
	}
	e.last.Error = stopped(e.graph, e.task, e.why)
	return e.last
}

// attempt makes one attempt. The error is that it could not begin.
func (e *execution) attempt() (r result, here bool, err error) {
	e.env.Attempt = e.env.Outbox.Attempt()
	if e.under, err = newTaskRun(e.graph, e.task, &e.env); err != nil {
		return result{}, true, err
	}
	e.under.reset()
	ctx := e.ctx
	if e.env.Tracer != nil {
		ctx, e.span = e.env.Tracer.Attempt(ctx, e.env.Attempt)
	}
	e.bounded = e.under.bound(ctx)
	r, here = e.under.runInline(e.bounded, e, e.watch)
	return r, here, nil
}

// resume implements resumer.
func (e *execution) resume(r result) {
	o, here := e.ended(r, nil)
	if !here {
		o, here = e.goOn()
	}
	if here {
		e.waits.late(e, e.metered(o))
	}
}

// waiter takes the outcome of a task that has kept the goroutine which it began on.
type waiter interface {
	late(*execution, pregel.Outcome)
}

// waiting is a waiter that hands the outcome to whoever receives from the channel.
type waiting chan pregel.Outcome

func (w waiting) late(_ *execution, o pregel.Outcome) { w <- o }

// ended takes in how an attempt ended, or why it could not begin. done says that it was the last, or that the task is
// stopped.
func (e *execution) ended(r result, err error) (o pregel.Outcome, done bool) {
	if err == nil {
		e.under.close()
		o, err = e.under.conclude(e.ctx, e.bounded, r)
		e.under.unbound()
		if e.env.outer != nil {
			o.Ledger = nil // the caller stores its own journal, which has all of it
		}
	}
	e.endSpan(&o, err)
	o.Emitted = append(slices.Clip(e.last.Emitted), o.Emitted...)
	if err == nil {
		return o, true
	}
	failure := graphadapter.FailureOf(e.graph.NameOf(e.task), e.task.Node, err)
	if wait, again := graphadapter.RetryAfter(e.policies, e.env.Attempt, err); again && e.ctx.Err() == nil {
		e.last = pregel.Outcome{Emitted: KeepEmitted(o.Emitted, MaxEmittedTotal), Ledger: o.Ledger, Kept: o.Kept}
		e.env.Outbox.Fail(e.ctx, wait, failure, e.last.Emitted)
		return pregel.Outcome{}, false
	}
	switch e.why, o.Error = err, failure; {
	case e.ctx.Err() != nil:
		o.Error = stopped(e.graph, e.task, context.Cause(e.ctx))
	case errors.Is(err, graphadapter.ErrYielded):
		o.Error = stopped(e.graph, e.task, err)
	}
	return o, true
}

// retrySubgraph answers whether a failed subgraph is to be run on, after the wait that its node's policy asks for. The yes
// is counted before the wait, so it is given once, and the execution that finds it hands it on.
func (e *execution) retrySubgraph() pregel.Outcome {
	if e.env.Outbox.Attempt() == 1 {
		wait, again := graphadapter.RetryAfter(e.policies, e.task.Attempt, e.task.Retry)
		if !again {
			return pregel.Outcome{}
		}
		if wait > 0 {
			e.env.Outbox.Fail(e.ctx, wait, e.task.Retry, nil)
		}
	}
	if !e.env.Outbox.pause(e.ctx) {
		return e.stopped()
	}
	return pregel.Outcome{Again: true}
}

// stopped is the end of a task that was stopped from outside: it runs again when its thread is continued.
func stopped(g *graphadapter.Graph, task *pregel.Task, why error) *pregel.NodeError {
	return &pregel.NodeError{Type: pregel.CancelledType, Graph: g.NameOf(task), Node: task.Node,
		Message: graphadapter.Bounded("cancelled: " + why.Error())}
}

// How an attempt ended.
const (
	attemptDone    = "done"
	attemptAsked   = "asked"
	attemptFailed  = "failed"
	attemptYielded = "yielded"
	attemptStopped = "stopped"
)

// endSpan ends the span of an attempt that has ended with that.
func (e *execution) endSpan(o *pregel.Outcome, err error) {
	if e.span == nil {
		return
	}
	end, outcome, failed := e.span, attemptDone, ""
	e.span = nil
	switch {
	case errors.Is(err, graphadapter.ErrYielded), o.Yielded:
		outcome = attemptYielded
	case err != nil && e.ctx.Err() != nil, errors.Is(err, graphadapter.ErrFenced):
		outcome, failed = attemptStopped, pregel.CancelledType
	case err != nil:
		outcome, failed = attemptFailed, failedType(err)
	case len(o.Questions) > 0:
		outcome = attemptAsked
	}
	end(outcome, failed)
}
