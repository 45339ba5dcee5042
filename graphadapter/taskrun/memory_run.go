package taskrun

import (
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// inMemory runs the tasks of a thread of this process.
type inMemory struct {
	graph  *graphadapter.Graph
	thread string
	opts   graphadapter.RunOptions
}

func (m inMemory) Root() *graphadapter.Graph { return m.graph }

func (m inMemory) Begin(task *pregel.Task, env *Env) *pregel.Outcome {
	*env = Env{Thread: m.thread, Context: m.opts.Context, Requester: m.opts.Requester, Use: m.opts.Use}
	if m.opts.Emitted != nil {
		env.Emit = func(e pregel.Emission) { m.opts.Emitted(task, e) }
	}
	return nil
}

func resultOf(program *pregel.Program, loop *pregel.Loop) (graphadapter.RunResult, error) {
	result := graphadapter.RunResult{Output: loop.Output()}
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
		return graphadapter.RunResult{}, fmt.Errorf("superstep: the loop of graph %q ended in status %d", program.Spec.Name, loop.Status())
	}
	return result, nil
}
