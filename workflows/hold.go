package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/workflows/protocol"
)

// heldOpen reports whether the run, which failed, waits for somebody to retry it. One whose history is full cannot: its
// retry is a run of its own. Nor does one that never began, because the engine refused its input.
func (r *run) heldOpen() bool {
	var full *HistoryFullError
	return r.in.Hold && r.failure != nil && !r.refused && !errors.As(r.failure, &full)
}

// suspect notes that the superstep which the run goes on with was under way before: its tasks may have acted without a
// trace. A segment may have gone on from there, and nobody knows how far; a retry goes on with the settings of the run.
func (r *run) suspect() {
	if r.loop != nil {
		r.suspectStep = r.loop.Step()
		r.segments.suspect.All = r.segments.suspect.All || r.relaxed()
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
	r.show(ctx)
	for r.life.State.Paused != nil && ctx.Err() == nil && r.loop != nil {
		_ = workflow.Await(ctx, func() bool {
			return r.life.State.Paused == nil || len(r.inbox.edits) > 0 || ctx.Err() != nil || r.due(ctx)
		})
		r.applyEdits(ctx)
		if r.continueUnderWay(ctx) {
			return false
		}
	}
	if r.loop == nil {
		r.tasks.queue = nil
		return false
	}
	r.status = protocol.StatusRunning
	r.show(ctx)
	return true
}

// drain asks the engine to stop before its next superstep, when somebody asked the run.
func (r *run) drain() {
	if r.life.Drain != "" {
		r.loop.Drain(r.life.Drain)
	}
}

// drainsOn reports whether a drain is still to come, though nothing is under way: the superstep has its answers already,
// so that the run does not rest, and goes on with it.
func (r *run) drainsOn() bool {
	return r.life.Drain != "" && r.failure == nil && r.waiting()
}

// drainFirst tells an engine that goes on what was asked before: a segment would be interrupted for that at once.
func (r *run) drainFirst() {
	if r.life.Drain != "" && r.loop != nil {
		r.drain()
		r.life.Drained()
	}
}
