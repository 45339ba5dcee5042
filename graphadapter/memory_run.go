package graphadapter

import (
	"errors"
	"fmt"

	"superstep.dev/graphadapter/pregel"
)

// inMemory runs the tasks of a thread of this process.
type inMemory struct {
	graph  *Graph
	thread string
	opts   RunOptions
}

func (m inMemory) root() *Graph { return m.graph }

func (m inMemory) begin(task *pregel.Task, env *Env) *pregel.Outcome {
	journal, err := NewTaskJournal(task)
	if err != nil {
		return &pregel.Outcome{Error: FailureOf(m.graph.Spec.Name, task.Node, err)}
	}
	*env = Env{Thread: m.thread, Context: m.opts.Context, Journal: journal, Requester: m.opts.Requester, Use: m.opts.Use}
	if m.opts.Emitted != nil {
		env.Emit = func(e pregel.Emission) { m.opts.Emitted(task, e) }
	}
	return nil
}

func (inMemory) end(*pregel.Task, *pregel.Outcome) {}

func resultOf(program *pregel.Program, loop *pregel.Loop) (RunResult, error) {
	result := RunResult{Output: loop.Output()}
	switch loop.Status() {
	case pregel.StatusDone:
	case pregel.StatusWaiting:
		for _, q := range program.OpenQuestions(loop.Thread()) {
			result.Questions = append(result.Questions, q.Question)
		}
	case pregel.StatusBreakpoint:
		result.Breakpoint = true
	case pregel.StatusDrained:
		var drained *pregel.DrainedError
		if errors.As(loop.Err(), &drained) {
			result.Drained = drained.Reason
		}
	default:
		return RunResult{}, fmt.Errorf("superstep: the loop of graph %q ended in status %d", program.Spec.Name, loop.Status())
	}
	return result, nil
}
