package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// rest holds the run until the engine has something to go on with, and then returns true; or until the run is cancelled,
// continued as a new one, or nothing is left to run and it is not kept open. Updates of the state are applied while it rests. No
// worker is occupied.
func (r *run) rest(ctx workflow.Context) bool {
	for ctx.Err() == nil && (!r.nothingLeft() || r.staysOpen()) {
		if !r.inbox.changing() {
			r.readAnswers(ctx, nil)
		}
		r.attend(ctx)
		if r.answeredAfterFailure() {
			r.keepAnswers(ctx) // whatever goes on with the thread finds them
		}
		if r.mayGoOn() { // with an event that was kept
			r.listed.goesOn()
			return true
		}
		r.listed.showAs(ctx, r.resting())
		paused := r.life.State.Paused
		r.awaitNews(ctx, func() bool {
			return r.mayGoOn() || r.answeredAfterFailure() || len(r.inbox.edits) > 0 || r.life.State.Paused != paused || ctx.Err() != nil || r.due(ctx) ||
				r.listed.Questions() && r.listed.shownNews != r.listed.news
		})
		if !r.idled && r.due(ctx) && r.continueAsNew(ctx) {
			return false
		}
		if r.mayGoOn() || r.waiting() && ctx.Err() != nil {
			r.listed.goesOn()
			return true
		}
		r.updates.applyEdits(ctx)
	}
	return false
}

// goOn continues with what arrived while the run rested. What was accepted counts also when the run has been cancelled
// since: it is in the state that a retry goes on from.
func (r *run) goOn(ctx workflow.Context) {
	r.idleEnds, r.idled = time.Time{}, false
	invoke, failed := r.inbox.invoke, r.failure != nil
	in := r.takeInput()
	if failed {
		defer r.doubtSuperstep() // as a run that follows a failed one
		r.doubt.since = workflow.Now(ctx)
	}
	defer r.drainAtOnce()
	if invoke == nil {
		r.start(ctx, in, false)
		return
	}
	if invoke.Settings != nil {
		settings := *invoke.Settings
		settings.Context = protocol.ContextOf(settings.Context, r.in.Context, invoke.Input.Value)
		r.in.Set(settings)
		r.openNotices(ctx)
	}
	if invoke.State != nil {
		thread, err := r.earlier(invoke.State)
		if err != nil {
			r.failure = err // the validator has read it already
			return
		}
		r.newest = r.thread
		r.thread, r.loop, r.doubt.step = thread, nil, -1
		r.life.Reopen(r.program.OpenQuestions(thread))
	}
	r.traced.goesOn(invoke.Trace)
	r.answer(ctx, invoke.ID, in, invoke.State != nil, invoke.Asked, failed)
}

// staysOpen reports whether the run takes more input when nothing is left to do.
func (r *run) staysOpen() bool { return r.in.KeepOpen != 0 && !r.idled }

// awaitNews waits for a condition. A run that is kept open for some time notices when that is over.
func (r *run) awaitNews(ctx workflow.Context, condition func() bool) {
	if !r.nothingLeft() || r.in.KeepOpen < 0 {
		_ = workflow.Await(ctx, condition)
		return
	}
	if r.idleEnds.IsZero() {
		r.idleEnds = workflow.Now(ctx).Add(time.Duration(r.in.KeepOpen) * time.Millisecond)
	}
	over := func() bool { return !workflow.Now(ctx).Before(r.idleEnds) }
	for again := true; again; {
		r.wakeIdle(ctx)
		err := workflow.Await(ctx, func() bool { return condition() || over() || r.idle.rang() })
		again = err == nil && !condition() && !over()
	}
	if over() {
		_ = workflow.Await(ctx, func() bool { return condition() || r.taking == 0 }) // who came in time has perhaps to wait for a gate
		GiveWay(ctx)                                                                 // an input that was accepted by then counts
		r.idled = r.taking == 0 && !r.mayGoOn() && len(r.inbox.edits) == 0
	}
}

// wakeIdle wakes the run when it has been idle for as long as it is kept open. One timer serves many turns: it is set anew when it
// is over while the run is not, and not with every turn, each of which would have two events of it.
func (r *run) wakeIdle(ctx workflow.Context) {
	t := &r.idle
	if t.timer != nil && !t.rang() && !t.at.After(r.idleEnds) {
		return
	}
	if t.stop != nil {
		t.stop()
	}
	timing, stop := workflow.WithCancel(ctx)
	left := max(r.idleEnds.Sub(workflow.Now(ctx)), time.Millisecond)
	*t = deadline{at: r.idleEnds, stop: stop,
		timer: workflow.NewTimerWithOptions(timing, left, workflow.TimerOptions{Summary: "kept open"})}
}

// doubtSuperstep notes that the superstep which the run goes on with was under way before: its tasks may have acted without a
// trace. A segment may have gone on from there, and nobody knows how far; a retry goes on with the settings of the run.
func (r *run) doubtSuperstep() {
	if r.loop != nil {
		r.doubt.step = r.loop.Step()
		r.doubt.All = r.doubt.All || r.relaxed()
	}
}

// answeredAfterFailure reports whether a run that failed was answered.
func (r *run) answeredAfterFailure() bool {
	return r.failure != nil && r.life.Waiting() && r.inbox.invoke == nil && !r.life.State.Retry
}

// pausedBeforeTasks reports whether the run is paused before tasks that it would start.
func (r *run) pausedBeforeTasks(ctx workflow.Context) bool {
	return r.life.State.Paused != nil && ctx.Err() == nil && !r.clock.expired && len(r.tasks.queue) > 0
}

// waitUnpaused keeps a run that was paused in the middle of a superstep from starting the rest of it. Its step timeout begins
// anew afterwards: a pause is not the nodes' time. It reports false when an update of the state has
// dropped the superstep, and when the run is continued as a new one.
func (r *run) waitUnpaused(ctx workflow.Context) bool {
	r.clock.leave()
	r.listed.showAs(ctx, protocol.StatusPaused)
	for r.life.State.Paused != nil && ctx.Err() == nil && r.loop != nil {
		_ = workflow.Await(ctx, func() bool {
			return r.life.State.Paused == nil || len(r.inbox.edits) > 0 || ctx.Err() != nil || r.due(ctx)
		})
		r.updates.applyEdits(ctx)
		if r.continueUnderWay(ctx) {
			return false
		}
	}
	if r.loop == nil {
		r.tasks.queue = nil
		return false
	}
	r.listed.showAs(ctx, protocol.StatusRunning)
	return true
}

// drainIsToCome reports whether a drain is still to come, though nothing is under way: the superstep has its answers already,
// so that the run does not rest, and goes on with it.
func (r *run) drainIsToCome() bool {
	return r.life.Drain != "" && r.failure == nil && r.waiting()
}

// drainAtOnce tells an engine that goes on what was asked before: a segment would be interrupted for that at once.
func (r *run) drainAtOnce() {
	if r.life.Drain != "" && r.loop != nil {
		r.drain(r.life.Drain)
		r.life.Drained()
	}
}

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
			if r.segments.waits(ctx) {
				r.showLong(ctx)
				r.segments.awaitStored(wait)
				continue
			}
			r.startTasks(ctx)
		}
		switch {
		case r.underWay():
			r.awaitTasks(ctx, wait)
			continue
		case !r.pausedBeforeTasks(ctx):
			r.failure = r.left(full)
		case r.waitUnpaused(ctx):
			continue
		}
		break
	}
	if r.successor == nil {
		r.doubt.settle(r.engine)
	}
	r.clock.leave()
	if !r.drainIsToCome() {
		r.life.Drained()
	}
}

// awaitTasks waits until something comes of the tasks under way, or for the run, and takes that in. wait is not cancelled with ctx, the
// run's.
func (r *run) awaitTasks(ctx, wait workflow.Context) {
	if !r.segments.opening() {
		r.listed.showLater(ctx)
	}
	r.listed.showAsked(ctx)
	paused := r.life.State.Paused != nil
	step := r.clock.context(ctx)
	_ = workflow.Await(wait, func() bool { return r.arrived(ctx, paused) || r.tasks.mustEnd(step) })
	if r.tasks.mustEnd(step) {
		r.tasks.interrupt(wait)
	}
	if r.segments.under == nil {
		r.drain(r.life.Drain)
		r.tasks.deliver(ctx.Err() != nil && r.life.Drops())
		return
	}
	r.segments.goOn(wait)
	if r.segments.ended() || r.segments.news(ctx) || r.tasks.mustEnd(step) {
		r.leaveSegment(wait)
	}
}

// outlasts is how long a run goes on from workflow task to workflow task until lists show that it does.
const outlasts = 500 * time.Millisecond

// showLong shows a run that goes on without an activity, when it has for a while.
func (r *run) showLong(ctx workflow.Context) {
	if workflow.Now(ctx).Sub(r.segments.began) > outlasts {
		r.listed.showLater(ctx)
	}
}

// underWay reports whether tasks are, or have ended without the loop's knowing of it.
func (r *run) underWay() bool {
	return r.tasks.running > 0 || len(r.tasks.results) > 0 || r.segments.under != nil
}

// startTasks starts what waits, in a segment or as an activity for each task. Those of a superstep out of time wait for
// ever.
func (r *run) startTasks(ctx workflow.Context) {
	if r.segments.under != nil || r.segments.fuses(ctx) && r.segments.start(ctx) {
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
		return r.segments.moved() || r.segments.news(ctx) || r.listed.later && !r.segments.opening()
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
