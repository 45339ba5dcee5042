package taskrun

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/stackroom"
)

// Driver runs the tasks of one loop: all of a superstep at once, or as many as the options allow.
type Driver struct {
	loop  *pregel.Loop
	opts  graphadapter.RunOptions
	run   Runner
	guard Guard // nil has no say

	queue   []*pregel.Task // handed out and not yet started, in task order
	running int
	sole    *pregel.Task // the one that runs, when nothing can happen until it ends: it needs no goroutine
	done    chan delivery
	step    superstep
	ctx     context.Context // of all of it
	ended   func(ending)    // told once
}

// Runner says how a driver's tasks run.
type Runner interface {
	// Root is the root graph.
	Root() *graphadapter.Graph
	// Begin fills in a task's environment, or returns an outcome: the task does not run then.
	Begin(*pregel.Task, *Env) *pregel.Outcome
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
	d := NewDriver(program, loop, opts, run, nil)
	defer d.Close()
	if err := d.Drive(ctx); err != nil {
		return err
	}
	return d.end(ctx)
}

// NewDriver returns a driver for a loop that has begun; nothing runs before [Driver.Drive]. The guard may be nil. The
// driver's timers end with [Driver.Close].
func NewDriver(program *pregel.Program, loop *pregel.Loop, opts graphadapter.RunOptions, run Runner, guard Guard) *Driver {
	if opts.Decoded == nil {
		opts.Decoded = &sync.Map{}
	}
	return &Driver{loop: loop, opts: opts, run: run, guard: guard, done: make(chan delivery), step: superstep{graph: program.Spec.Name}}
}

// Queue are the tasks that were handed out and did not start, in task order. Nothing may run.
func (d *Driver) Queue() []*pregel.Task { return d.queue }

// Close frees the superstep's timer. Nothing may run.
func (d *Driver) Close() { d.step.leave() }

// Drive runs tasks until none runs and none may start. The error is why a run ended that was held at its gate.
func (d *Driver) Drive(ctx context.Context) error {
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

// onward goes on driving on a new goroutine, as the one before may belong to a node: see [inlineRun]. late is what that
// node's task has come to.
func (d *Driver) onward(late ...delivery) {
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
		stackroom.Grow()
		for _, arrived := range late {
			d.take(arrived)
		}
		err := d.steps(&away)
		e = ending{err: err}
	}()
}

// steps drives until the end. away is true while a task has the goroutine, and behind it when another one goes on.
func (d *Driver) steps(away *bool) error {
	ctx := d.ctx
	for {
		if d.sole != nil {
			t := d.sole
			d.sole = nil
			*away = true
			o, here := d.perform(d.step.ctx, d.step.watch, t, true)
			if !here {
				return nil
			}
			*away = false
			d.take(delivery{t, o})
		}
		ready := d.loop.Ready()
		d.queue = append(d.queue, ready...)
		var opened <-chan struct{}
		if d.guard == nil || d.guard.Open(ctx, d.queue, len(ready) > 0) {
			d.step.enter(ctx, d.loop.Step(), d.opts.StepTimeout)
			opened = d.start()
		}
		switch {
		case d.sole != nil:
			continue
		case d.running == 0 && opened == nil:
			return nil
		case d.running == 0:
			d.step.leave() // the time at the gate is not the superstep's
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
func (d *Driver) perform(ctx context.Context, watch *deadlineWatch, t *pregel.Task, alone bool) (o pregel.Outcome, here bool) {
	e := &execution{ctx: ctx, watch: watch, graph: d.run.Root(), task: t, waits: d, alone: alone}
	if refused := d.run.Begin(t, &e.env); refused != nil {
		return *refused, true
	}
	e.env.decoded = d.opts.Decoded
	return e.run()
}

// late takes in the outcome of a task that has kept the goroutine which it began on.
func (d *Driver) late(e *execution, o pregel.Outcome) {
	if e.alone {
		d.onward(delivery{e.task, o})
		return
	}
	d.done <- delivery{e.task, o}
}

// take takes in a task that has ended.
func (d *Driver) take(arrived delivery) {
	d.running--
	d.drain()
	d.deliver(arrived)
}

// deliver gives the loop an outcome, unless the guard keeps it.
func (d *Driver) deliver(arrived delivery) {
	if d.guard != nil {
		outcome, ok := d.guard.Arrived(arrived.task, arrived.outcome)
		if !ok {
			return
		}
		arrived.outcome = outcome
	}
	var cause interface{ DropsSuperstep() bool }
	if errors.As(context.Cause(d.ctx), &cause) && cause.DropsSuperstep() {
		arrived.outcome = Dropped(d.step.graph, arrived.task.Node, arrived.outcome)
	}
	d.loop.Deliver(arrived.task, arrived.outcome)
}

// drain passes on what asked the run to stop so far: before the outcome with which a superstep may end.
func (d *Driver) drain() {
	select {
	case reason := <-d.opts.Drain:
		d.loop.Drain(reason)
	default:
	}
}

// start starts queued tasks in their order. While the gate is shut it starts none, and returns what tells when it opens. A
// superstep out of time goes on in any case: its tasks only learn that they do not run.
func (d *Driver) start() (opened <-chan struct{}) {
	if opened := d.opts.Gate.Opened(); opened != nil && len(d.queue) > 0 && d.step.ctx.Err() == nil {
		return opened
	}
	for len(d.queue) > 0 && (d.opts.MaxConcurrency <= 0 || d.running < d.opts.MaxConcurrency) {
		task, ctx, watch := d.queue[0], d.step.ctx, d.step.watch
		d.queue = d.queue[1:]
		d.running++
		if d.running == 1 && len(d.queue) == 0 {
			d.sole = task
			break
		}
		go func() {
			stackroom.Grow()
			if o, here := d.perform(ctx, watch, task, false); here {
				d.done <- delivery{task, o}
			}
		}()
	}
	return nil
}

// Expired reports whether the superstep under way ran out of time.
func (d *Driver) Expired() bool {
	if d.step.ctx == nil || d.step.number != d.loop.Step() || !d.step.late() {
		return false
	}
	var node *pregel.NodeError
	return len(d.queue) > 0 || errors.As(d.loop.Err(), &node) && node.Type == pregel.CancelledType
}

// end says why the run ended.
func (d *Driver) end(ctx context.Context) error {
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

// superstep is the root graph's superstep that runs, whatever supersteps its subgraphs are in: its time is one.
type superstep struct {
	graph  string
	number int
	ctx    context.Context
	watch  *deadlineWatch // over ctx
	cancel context.CancelFunc
}

// enter makes number the superstep that runs; nothing changes while it is. With a limit its context ends in time, with
// a *graphadapter.StepTimeoutError as the cause.
func (s *superstep) enter(ctx context.Context, number int, limit time.Duration) {
	if s.ctx != nil && (s.number == number || limit <= 0) { // without a limit all supersteps have one context
		s.number = number
		return
	}
	s.leave()
	s.number, s.ctx, s.cancel = number, ctx, func() {}
	if limit > 0 {
		s.ctx, s.cancel = context.WithTimeoutCause(ctx, limit, &graphadapter.StepTimeoutError{Graph: s.graph, Step: number, Limit: limit})
	}
	s.watch = watchDeadline(s.ctx)
}

// leave frees the superstep's timer.
func (s *superstep) leave() {
	if s.ctx != nil {
		s.watch.end()
		s.cancel()
	}
	s.ctx = nil
}

// late reports whether the superstep's time is over.
func (s *superstep) late() bool {
	var late *graphadapter.StepTimeoutError
	return s.ctx != nil && errors.As(context.Cause(s.ctx), &late)
}
