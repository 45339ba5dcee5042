package graphadapter

import (
	"context"
	"errors"
	"fmt"

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

// driver runs the tasks of one loop.
type driver struct {
	loop *pregel.Loop
	opts RunOptions
	run  func(context.Context, *pregel.Task) pregel.Outcome

	queue   []*pregel.Task // handed out and not yet started, in task order
	running int
	done    chan delivery
	step    superstep
}

// delivery is one task's outcome on its way to the loop.
type delivery struct {
	task    *pregel.Task
	outcome pregel.Outcome
}

// drive runs a loop's tasks, all of a superstep at once or as many as the options allow, until the run ends. When ctx is
// done, or a superstep runs out of time, it starts no more, waits for the tasks that run, keeps what finished, and
// returns the cause.
func drive(ctx context.Context, program *pregel.Program, loop *pregel.Loop, opts RunOptions,
	run func(context.Context, *pregel.Task) pregel.Outcome) error {
	d := &driver{loop: loop, opts: opts, run: run, done: make(chan delivery), step: superstep{graph: program.Spec.Name}}
	defer d.step.leave()
	for {
		d.queue = append(d.queue, loop.Ready()...)
		d.step.enter(ctx, loop.Step(), opts.StepTimeout)
		opened := d.start()
		switch {
		case d.running == 0 && opened == nil:
			return d.end(ctx)
		case d.running == 0:
			d.step.leave() // the time at the gate is not the superstep's
			if err := opts.hold(ctx, opened); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		select {
		case arrived := <-d.done:
			d.running--
			d.drain()
			loop.Deliver(arrived.task, arrived.outcome)
		case <-opened:
		}
	}
}

// drain passes on what asked the run to stop so far: before the outcome with which a superstep may end.
func (d *driver) drain() {
	select {
	case reason := <-d.opts.Drain:
		d.loop.Drain(reason)
	default:
	}
}

// start starts queued tasks in their order. While the gate is shut it starts none, and returns what tells when it opens. A
// superstep out of time goes on in any case: its tasks only learn that they do not run.
func (d *driver) start() (opened <-chan struct{}) {
	if opened := d.opts.Gate.shut(); opened != nil && len(d.queue) > 0 && d.step.ctx.Err() == nil {
		return opened
	}
	for len(d.queue) > 0 && (d.opts.MaxConcurrency <= 0 || d.running < d.opts.MaxConcurrency) {
		task, ctx := d.queue[0], d.step.ctx
		d.queue = d.queue[1:]
		d.running++
		go func() { d.done <- delivery{task, d.run(ctx, task)} }()
	}
	return nil
}

// end says why the run ended.
func (d *driver) end(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := d.loop.Err()
	var drained *pregel.DrainedError
	var node *pregel.NodeError
	switch {
	case errors.As(err, &drained):
		return nil // an end that was asked for; see resultOf
	case errors.As(err, &node) && node.Type == pregel.CancelledType && d.step.ctx.Err() != nil:
		return context.Cause(d.step.ctx)
	}
	return err
}

// inMemory runs the tasks of a thread of this process.
func inMemory(g *Graph, thread string, opts RunOptions) func(context.Context, *pregel.Task) pregel.Outcome {
	return func(ctx context.Context, task *pregel.Task) pregel.Outcome {
		journal, err := NewTaskJournal(task)
		if err != nil {
			return pregel.Outcome{Error: FailureOf(g.Spec.Name, task.Node, err)}
		}
		env := Env{Thread: thread, Context: opts.Context, Journal: journal}
		if opts.Emitted != nil {
			env.Emit = func(e pregel.Emission) { opts.Emitted(task, e) }
		}
		return runTask(ctx, g, task, env)
	}
}

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
