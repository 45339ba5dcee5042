package taskrun

import (
	"context"
	"errors"
	"runtime"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// driver runs the tasks of one loop.
type driver struct {
	loop *pregel.Loop
	opts graphadapter.RunOptions
	run  Runner

	Queue   []*pregel.Task // handed out and not yet started, in task order
	running int
	sole    *pregel.Task // the one that runs, when nothing can happen until it ends: it needs no goroutine
	done    chan delivery
	Step    superstep
	Guard   Guard           // nil has no say
	ctx     context.Context // of all of it
	ended   func(ending)    // told once
}

// Runner says how a driver's tasks run.
type Runner interface {
	// Root is the root graph.
	Root() *graphadapter.Graph
	// Begin fills in a task's environment, or returns an outcome: the task does not run then.
	Begin(*pregel.Task, *Env) *pregel.Outcome
	// End completes a task's outcome.
	End(*pregel.Task, *pregel.Outcome)
}

// Guard has a say in what a driver starts and delivers.
type Guard interface {
	// Open reports whether tasks of the queue may start; fresh says that some were handed out just now.
	Open(ctx context.Context, queue []*pregel.Task, fresh bool) bool
	// Arrived is given a task's outcome; it returns the one to deliver, or false when the task is given back without one.
	Arrived(*pregel.Task, pregel.Outcome) (pregel.Outcome, bool)
}

// delivery is one task's outcome on its way to the loop.
type delivery struct {
	task    *pregel.Task
	outcome pregel.Outcome
}

// drive runs a loop's tasks, all of a superstep at once or as many as the options allow, until the run ends. When ctx is
// done, or a superstep runs out of time, it starts no more, waits for the tasks that run, keeps what finished, and
// returns the cause.
func drive(ctx context.Context, program *pregel.Program, loop *pregel.Loop, opts graphadapter.RunOptions,
	run Runner) error {
	d := NewDriver(program, loop, opts, run)
	defer d.Step.Leave()
	if err := d.Drive(ctx); err != nil {
		return err
	}
	return d.end(ctx)
}

// NewDriver returns a driver for a loop that has begun; nothing runs before [driver.Drive].
func NewDriver(program *pregel.Program, loop *pregel.Loop, opts graphadapter.RunOptions, run Runner) *driver {
	return &driver{loop: loop, opts: opts, run: run, done: make(chan delivery), Step: superstep{graph: program.Spec.Name}}
}

// Drive runs tasks until none runs and none may start. The error is why a run ended that was held at its gate.
func (d *driver) Drive(ctx context.Context) error {
	ended := make(chan ending, 1)
	d.ended = func(e ending) { ended <- e }
	d.ctx = ctx
	d.onward()
	e := <-ended
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.exited:
		runtime.Goexit()
	}
	return e.err
}

// ending is how a drive ended.
type ending struct {
	err      error
	panicked *graphadapter.PanicError // somebody did besides nodes: the engine, an observer
	exited   bool                     // somebody ended the goroutine
}

// onward goes on driving on a new goroutine, as the one before may belong to a node: see [TaskRun.stay]. late is what that
// node's task has come to.
func (d *driver) onward(late ...delivery) {
	go func() {
		// What ended the goroutine, unless steps did not come back: then it was a node, and others go on.
		e, away := ending{exited: true}, false
		defer func() {
			if p := recover(); p != nil {
				e, away = ending{panicked: graphadapter.NewPanicError(p)}, false
			}
			if !away {
				d.ended(e)
			}
		}()
		growStack(0)
		for _, arrived := range late {
			d.take(arrived)
		}
		err := d.steps(&away)
		e = ending{err: err}
	}()
}

// steps drives until the end. away is true while a task has the goroutine, and behind it when another one goes on.
func (d *driver) steps(away *bool) error {
	ctx := d.ctx
	for {
		if d.sole != nil {
			t := d.sole
			d.sole = nil
			*away = true
			o, here := d.perform(d.Step.ctx, d.Step.watch, t, true)
			if !here {
				return nil
			}
			*away = false
			d.take(delivery{t, o})
		}
		ready := d.loop.Ready()
		d.Queue = append(d.Queue, ready...)
		var opened <-chan struct{}
		if d.Guard == nil || d.Guard.Open(ctx, d.Queue, len(ready) > 0) {
			d.Step.enter(ctx, d.loop.Step(), d.opts.StepTimeout)
			opened = d.start()
		}
		switch {
		case d.sole != nil:
			continue
		case d.running == 0 && opened == nil:
			return nil
		case d.running == 0:
			d.Step.Leave() // the time at the gate is not the superstep's
			if err := d.opts.Hold(ctx, opened); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		select {
		case arrived := <-d.done:
			d.take(arrived)
		case <-opened:
		}
	}
}

// perform runs a task on this goroutine. It reports false when the outcome comes, or came, elsewhere; alone says that nobody
// waits for it there.
func (d *driver) perform(ctx context.Context, watch *deadlineWatch, t *pregel.Task, alone bool) (o pregel.Outcome, here bool) {
	e := &execution{ctx: ctx, watch: watch, graph: d.run.Root(), task: t, driver: d, alone: alone}
	if refused := d.run.Begin(t, &e.env); refused != nil {
		return *refused, true
	}
	if o, here = e.run(); here {
		d.run.End(t, &o)
	}
	return o, here
}

// late takes in the outcome of a task that has kept the goroutine which it began on.
func (d *driver) late(e *execution, o pregel.Outcome) {
	d.run.End(e.task, &o)
	if e.alone {
		d.onward(delivery{e.task, o})
		return
	}
	d.done <- delivery{e.task, o}
}

// take takes in a task that has ended.
func (d *driver) take(arrived delivery) {
	d.running--
	d.drain()
	d.deliver(arrived)
}

// deliver gives the loop an outcome, unless the guard keeps it.
func (d *driver) deliver(arrived delivery) {
	if d.Guard != nil {
		outcome, ok := d.Guard.Arrived(arrived.task, arrived.outcome)
		if !ok {
			return
		}
		arrived.outcome = outcome
	}
	d.loop.Deliver(arrived.task, arrived.outcome)
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
	if opened := d.opts.Gate.Opened(); opened != nil && len(d.Queue) > 0 && d.Step.ctx.Err() == nil {
		return opened
	}
	for len(d.Queue) > 0 && (d.opts.MaxConcurrency <= 0 || d.running < d.opts.MaxConcurrency) {
		task, ctx, watch := d.Queue[0], d.Step.ctx, d.Step.watch
		d.Queue = d.Queue[1:]
		d.running++
		if d.running == 1 && len(d.Queue) == 0 {
			d.sole = task
			break
		}
		go func() {
			growStack(0)
			if o, here := d.perform(ctx, watch, task, false); here {
				d.done <- delivery{task, o}
			}
		}()
	}
	return nil
}

// Expired reports whether the superstep under way ran out of time.
func (d *driver) Expired() bool {
	if d.Step.ctx == nil || d.Step.number != d.loop.Step() || !d.Step.late() {
		return false
	}
	var node *pregel.NodeError
	return len(d.Queue) > 0 || errors.As(d.loop.Err(), &node) && node.Type == pregel.CancelledType
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
	case errors.As(err, &node) && node.Type == pregel.CancelledType && d.Step.ctx.Err() != nil:
		return context.Cause(d.Step.ctx)
	}
	return err
}
