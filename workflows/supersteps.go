package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
)

// runTasks runs the engine's tasks until it has none left, because the run has finished, failed, or waits for people; or
// until the run is continued as a new one. Once the run is cancelled, or its superstep out of time, it starts no more,
// and waits for the tasks under way: their writes are kept.
func (r *run) runTasks(ctx workflow.Context) {
	if r.failure != nil || r.loop == nil {
		r.life.Drained() // there is no superstep to stop before
		return
	}
	// A disconnected context: the wait for running tasks outlasts the cancellation that ends them.
	wait, _ := workflow.NewDisconnectedContext(ctx)
	for {
		r.attend(ctx)
		r.answerRunning(ctx)
		r.tasks.add(r.loop.Ready())
		hold := r.continueUnderWay(ctx)
		if r.successor != nil {
			break
		}
		full := r.room.full(ctx)
		if ctx.Err() == nil && full == nil && r.segments.expired == nil && r.life.State.Paused == nil && !hold {
			r.startTasks(ctx)
		}
		if r.tasks.running == 0 && len(r.tasks.results) == 0 && r.segments.under == nil {
			if r.pausedBeforeTasks(ctx) {
				if r.waitUnpaused(ctx) {
					continue
				}
				break
			}
			r.failure = r.left(full)
			break
		}
		r.listed.showAsked(ctx)
		paused := r.life.State.Paused != nil
		step := r.clock.context(ctx)
		_ = workflow.Await(wait, func() bool { return r.arrived(ctx, paused) || r.tasks.mustEnd(step) })
		if r.tasks.mustEnd(step) {
			r.tasks.interrupt(wait)
		}
		if r.segments.under != nil {
			r.leaveSegment(wait)
			continue
		}
		r.drain(r.life.Drain)
		r.tasks.deliver()
	}
	if r.successor == nil {
		r.doubt.settle(r.engine)
	}
	r.clock.leave()
	if !r.drainIsToCome() {
		r.life.Drained()
	}
}

// startTasks starts what waits, in a segment or as an activity for each task. Those of a superstep out of time wait for
// ever.
func (r *run) startTasks(ctx workflow.Context) {
	if r.segments.under != nil || r.segments.fuses() && r.segments.start(ctx) {
		r.clock.leave() // the segment's own clock bounds its supersteps
		return
	}
	r.clock.enter(ctx, r.engine)
	if !r.clock.expired {
		r.tasks.schedule(r.clock.context(ctx))
	}
	r.segments.apart = r.segments.apart && len(r.tasks.queue) > 0
}

// arrived reports whether there is something to go on with; paused says that the run was when it last looked.
func (r *run) arrived(ctx workflow.Context, paused bool) bool {
	if r.segments.under != nil {
		return r.segments.ended() || r.segments.news(ctx)
	}
	return len(r.tasks.results) > 0 || ctx.Err() == nil && (len(r.life.Given) > 0 || paused && r.life.State.Paused == nil) || r.listed.unlisted()
}

// leaveSegment takes in a segment that has ended, and makes one leave that is still under way.
func (r *run) leaveSegment(ctx workflow.Context) {
	if r.segments.ended() {
		r.segments.deliver(ctx)
		return
	}
	r.segments.interrupt(ctx)
}

// left says why the run goes no further, nil when it only stands still; full is why no more tasks may be started.
func (r *run) left(full error) error {
	err := r.loop.Err()
	var drained *pregel.DrainedError
	var node *pregel.NodeError
	switch {
	case r.segments.expired != nil:
		r.tasks.queue = nil
		return r.segments.expired
	case r.clock.expired && (len(r.tasks.queue) > 0 || errors.As(err, &node) && node.Type == pregel.CancelledType):
		r.tasks.queue = nil
		return r.clock.timeout
	case len(r.tasks.queue) > 0 && full != nil:
		return full
	case errors.As(err, &drained):
		r.drained = drained.Reason // an end that was asked for
		return nil
	}
	return err
}
