package graphadapter

import (
	"context"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// runTask runs one task to its outcome: attempt by attempt, as the node's retry policy says. A task whose time is over
// before it begins does not run.
func runTask(ctx context.Context, g *Graph, task *pregel.Task, env Env) pregel.Outcome {
	if ctx.Err() != nil {
		return pregel.Outcome{Error: cancelled(ctx, g, task)}
	}
	policies, _ := g.RetryPolicies(task) // without the node nothing runs, and nothing is repeated
	if task.Retry != nil {
		wait, again := RetryAfter(policies, task.Attempt, task.Retry)
		if again && !pause(ctx, wait) {
			return pregel.Outcome{Error: cancelled(ctx, g, task)}
		}
		return pregel.Outcome{Again: again}
	}
	var before []pregel.Emission // of failed attempts: what was streamed is not taken back
	for env.Attempt = 1; ; env.Attempt++ {
		outcome, err := RunAttempt(ctx, g, task, env)
		outcome.Emitted = append(before, outcome.Emitted...)
		if err == nil {
			return outcome
		}
		wait, again := RetryAfter(policies, env.Attempt, err)
		if again && pause(ctx, wait) {
			before = KeepEmitted(outcome.Emitted, MaxEmittedTotal)
			continue
		}
		outcome.Error = FailureOf(g.nameOf(task), task.Node, err)
		if ctx.Err() != nil {
			outcome.Error = cancelled(ctx, g, task)
		}
		return outcome
	}
}

func cancelled(ctx context.Context, g *Graph, task *pregel.Task) *pregel.NodeError {
	return &pregel.NodeError{Type: pregel.CancelledType, Graph: g.nameOf(task), Node: task.Node,
		Message: bounded("cancelled: " + context.Cause(ctx).Error())}
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
