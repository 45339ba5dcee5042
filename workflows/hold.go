package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/workflows/protocol"
)

// suspect notes that the superstep which the run goes on with was under way before: its tasks may have acted without a
// trace. A segment may have gone on from there, and nobody knows how far; a retry goes on with the settings of the run.
func (r *run) suspect() {
	if r.loop != nil {
		r.doubt.step = r.loop.Step()
		r.doubt.All = r.doubt.All || r.relaxed()
	}
}

// hasNoted reports whether a run that failed was answered.
func (r *run) hasNoted() bool {
	return r.failure != nil && r.life.Waiting() && r.inbox.invoke == nil && !r.life.State.Retry
}

// noteAnswers puts what a run that failed was answered on record, in its thread: whatever goes on with that finds it.
func (r *run) noteAnswers(ctx workflow.Context) {
	if r.hasNoted() {
		r.keepAnswers(ctx)
	}
}

// holdsUp reports whether the run is paused before tasks that it would start.
func (r *run) holdsUp(ctx workflow.Context) bool {
	return r.life.State.Paused != nil && ctx.Err() == nil && !r.clock.expired && len(r.tasks.queue) > 0
}

// holdUp keeps a run that was paused in the middle of a superstep from starting the rest of it. Its step timeout begins
// anew afterwards: a pause is not the nodes' time. It reports false when an update of the state has
// dropped the superstep, and when the run is continued as a new one.
func (r *run) holdUp(ctx workflow.Context) bool {
	r.clock.leave()
	r.status = protocol.StatusPaused
	r.listed.show(ctx)
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
	r.status = protocol.StatusRunning
	r.listed.show(ctx)
	return true
}

// drainsOn reports whether a drain is still to come, though nothing is under way: the superstep has its answers already,
// so that the run does not rest, and goes on with it.
func (r *run) drainsOn() bool {
	return r.life.Drain != "" && r.failure == nil && r.waiting()
}

// drainFirst tells an engine that goes on what was asked before: a segment would be interrupted for that at once.
func (r *run) drainFirst() {
	if r.life.Drain != "" && r.loop != nil {
		r.drain(r.life.Drain)
		r.life.Drained()
	}
}
