package graphadapter

import (
	"context"
	"fmt"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// DefaultRecursionLimit bounds the supersteps of a run that names no limit: LangGraph's default.
const DefaultRecursionLimit = 10_007

func (o RunOptions) engine() pregel.Options {
	if o.RecursionLimit == 0 {
		o.RecursionLimit = DefaultRecursionLimit
	}
	return o.Options
}

// delivery is one task's outcome on its way to the loop.
type delivery struct {
	task    *pregel.Task
	outcome pregel.Outcome
}

// drive runs a loop's tasks, all of a superstep at once, until the run ends. When ctx is done it waits for the tasks
// that run, keeps what finished, and returns the cause.
func drive(ctx context.Context, loop *pregel.Loop, run func(context.Context, *pregel.Task) pregel.Outcome) error {
	done := make(chan delivery)
	running := 0
	for {
		for _, task := range loop.Ready() {
			running++
			go func() { done <- delivery{task, run(ctx, task)} }()
		}
		if running == 0 {
			break
		}
		d := <-done
		running--
		loop.Deliver(d.task, d.outcome)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return loop.Err()
}

// inMemory runs the tasks of a thread of this process.
func inMemory(g *Graph, thread string) func(context.Context, *pregel.Task) pregel.Outcome {
	return func(ctx context.Context, task *pregel.Task) pregel.Outcome {
		journal, err := NewMemoryJournal(task.Ledger)
		if err != nil {
			return pregel.Outcome{Error: FailureOf(g.Spec.Name, task.Node, err)}
		}
		return runTask(ctx, g, task, Env{Thread: thread, Journal: journal})
	}
}

// runTask runs one task to its outcome: attempt by attempt, as the node's retry policy says.
func runTask(ctx context.Context, g *Graph, task *pregel.Task, env Env) pregel.Outcome {
	if task.Retry != nil {
		wait, again := RetryAfter(g.retries(task), task.Attempt, task.Retry)
		return pregel.Outcome{Again: again && pause(ctx, wait)}
	}
	var emitted []pregel.Emission // of failed attempts too: what was streamed is not taken back
	for env.Attempt = 1; ; env.Attempt++ {
		outcome, err := RunAttempt(ctx, g, task, env)
		emitted = append(emitted, outcome.Emitted...)
		if err == nil {
			outcome.Emitted = emitted
			return outcome
		}
		wait, again := RetryAfter(g.retries(task), env.Attempt, err)
		if again && ctx.Err() == nil && pause(ctx, wait) {
			continue
		}
		stored, _ := EncodeLedger(env.Journal.Entries())
		if ctx.Err() != nil {
			cancelled := &pregel.NodeError{Type: "Cancelled", Message: "cancelled", Graph: g.nameOf(task), Node: task.Node}
			return pregel.Outcome{Error: cancelled, Ledger: stored, Emitted: emitted}
		}
		return pregel.Outcome{Error: FailureOf(g.nameOf(task), task.Node, err), Ledger: stored, Emitted: emitted}
	}
}

// retries are the retry policies of a task's node.
func (g *Graph) retries(task *pregel.Task) []RetryPolicy {
	sub, ok := g.Subgraph(task.Graph)
	if !ok {
		return nil
	}
	return sub.Nodes[task.Node].Retry
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

func resultOf(program *pregel.Program, loop *pregel.Loop) (RunResult, error) {
	switch loop.Status() {
	case pregel.StatusDone:
		return RunResult{Output: loop.Output()}, nil
	case pregel.StatusWaiting:
		result := RunResult{Output: loop.Output()}
		for _, q := range program.OpenQuestions(loop.Thread()) {
			result.Questions = append(result.Questions, q.Question)
		}
		return result, nil
	case pregel.StatusBreakpoint:
		return RunResult{Output: loop.Output(), Breakpoint: true}, nil
	default:
		return RunResult{}, fmt.Errorf("superstep: the loop of graph %q ended in status %d", program.Spec.Name, loop.Status())
	}
}
