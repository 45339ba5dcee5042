package graphadapter

import (
	"context"
	"errors"
	"slices"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// runTask runs one task to its outcome: attempt by attempt, as the node's retry policy says. A task whose time is over
// before it begins does not run.
func runTask(ctx context.Context, g *Graph, task *pregel.Task, env Env) pregel.Outcome {
	if ctx.Err() != nil {
		return pregel.Outcome{Error: cancelled(ctx, g, task)}
	}
	tries := env.attempts
	if tries == nil {
		_, between, err := DecodeBetween(task.Ledger)
		if err != nil {
			return pregel.Outcome{Error: FailureOf(g.nameOf(task), task.Node, err)}
		}
		tries = &attempts{kept: between}
	}
	policies, _ := g.RetryPolicies(task) // without the node nothing runs, and nothing is repeated
	if task.Retry != nil {
		return retrySubgraph(ctx, g, task, policies, tries)
	}
	last := pregel.Outcome{Emitted: tries.between().Emitted}
	for tries.pause(ctx) {
		env.Attempt = tries.number()
		before := tries.between().Emitted // of failed attempts: what was streamed is not taken back
		outcome, err := RunAttempt(ctx, g, task, env)
		outcome.Emitted = append(slices.Clip(before), outcome.Emitted...)
		switch {
		case err == nil && outcome.Yielded:
			return withBefore(outcome, before)
		case err == nil:
			return outcome
		}
		wait, again := RetryAfter(policies, env.Attempt, err)
		if again && ctx.Err() == nil {
			last = pregel.Outcome{Emitted: KeepEmitted(outcome.Emitted, MaxEmittedTotal), Ledger: outcome.Ledger, Kept: outcome.Kept}
			tries.failed(ctx, wait, last.Emitted)
			continue
		}
		outcome.Error = FailureOf(g.nameOf(task), task.Node, err)
		if errors.Is(err, ErrYielded) {
			outcome.Error = stopped(g, task, err)
		}
		if ctx.Err() != nil {
			outcome.Error = cancelled(ctx, g, task)
		}
		return outcome
	}
	last.Error = cancelled(ctx, g, task)
	return last
}

// retrySubgraph answers whether a failed subgraph is to be run on, after the wait that its node's policy asks for.
func retrySubgraph(ctx context.Context, g *Graph, task *pregel.Task, policies []RetryPolicy, tries *attempts) pregel.Outcome {
	if tries.number() == 1 {
		wait, again := RetryAfter(policies, task.Attempt, task.Retry)
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
	entries, between, err := DecodeBetween(o.Ledger)
	if err != nil {
		return o
	}
	between.Emitted = emitted
	if stored, err := EncodeBetween(entries, between); err == nil {
		o.Ledger = stored
	}
	return o
}

func cancelled(ctx context.Context, g *Graph, task *pregel.Task) *pregel.NodeError {
	return stopped(g, task, context.Cause(ctx))
}

// stopped is the end of a task that was stopped from outside: it runs again when its thread is continued.
func stopped(g *Graph, task *pregel.Task, why error) *pregel.NodeError {
	return &pregel.NodeError{Type: pregel.CancelledType, Graph: g.nameOf(task), Node: task.Node,
		Message: bounded("cancelled: " + why.Error())}
}

func (g *Graph) nameOf(task *pregel.Task) string {
	if sub, ok := g.Subgraph(task.Graph); ok {
		return sub.Spec.Name
	}
	return g.Spec.Name
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
