package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
)

// clock bounds the superstep under way, when the run has a step timeout. Out of time, it cancels the superstep's tasks.
type clock struct {
	step    int
	ends    time.Time
	ctx     workflow.Context // that of the superstep's tasks; nil while no superstep is timed
	stop    workflow.CancelFunc
	expired bool
	timeout *graphadapter.StepTimeoutError
}

// enter starts the clock for the superstep that the engine is at, unless it runs already.
func (c *clock) enter(ctx workflow.Context, e *engine) {
	if e.in.StepTimeout <= 0 || c.ctx != nil && c.step == e.loop.Step() {
		return
	}
	limit, now := time.Duration(e.in.StepTimeout)*time.Millisecond, workflow.Now(ctx)
	ends := now.Add(limit)
	if c.ctx == nil && !c.ends.IsZero() && c.step == e.loop.Step() {
		ends = c.ends // it was timed by the run that this one continues
	}
	c.leave()
	tasks, cancelTasks := workflow.WithCancel(ctx)
	timing, cancelTimer := workflow.WithCancel(ctx)
	*c = clock{step: e.loop.Step(), ends: ends, ctx: tasks, stop: cancelTimer,
		timeout: &graphadapter.StepTimeoutError{Graph: e.in.Graph, Step: e.loop.Step(), Limit: limit}}
	step := c.step
	timer := workflow.NewTimerWithOptions(timing, max(ends.Sub(now), time.Millisecond), workflow.TimerOptions{Summary: "step timeout"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil && c.ctx == tasks && c.step == step {
			c.expired = true
			cancelTasks()
		}
	})
}

// leave stops the clock.
func (c *clock) leave() {
	if c.stop != nil {
		c.stop()
	}
	*c = clock{}
}

// context is that of the superstep's tasks; without a clock it is the run's.
func (c *clock) context(ctx workflow.Context) workflow.Context {
	if c.ctx != nil {
		return c.ctx
	}
	return ctx
}

// GiveWay lets the other coroutines have a turn: what came with one workflow task, as a cancellation and the signal that says
// how, is taken in by all of them before this one goes on.
func GiveWay(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	turned := false
	workflow.Go(ctx, func(workflow.Context) { turned = true }) // the last in turn
	_ = workflow.Await(ctx, func() bool { return turned })
}
