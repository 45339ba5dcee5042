package workflows

import (
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
		r.noteAnswers(ctx)
		if r.mayGoOn() { // with an event that was kept
			if r.status != protocol.StatusRunning {
				r.status = protocol.StatusRunning
				r.show(ctx)
			}
			return true
		}
		r.status = r.resting()
		r.show(ctx)
		paused := r.life.State.Paused
		r.awaitNews(ctx, func() bool {
			return r.mayGoOn() || r.hasNoted() || len(r.inbox.edits) > 0 || r.life.State.Paused != paused || ctx.Err() != nil || r.due(ctx) ||
				r.listed.Questions() && r.listed.news != r.host.news
		})
		if !r.idled && r.due(ctx) && r.continueAsNew(ctx) {
			return false
		}
		if r.mayGoOn() || r.waiting() && ctx.Err() != nil {
			r.status = protocol.StatusRunning
			r.show(ctx)
			return true
		}
		r.applyEdits(ctx)
	}
	return false
}

// mayGoOn reports whether there is something to go on with, and nobody holds the run up. One that failed does not go on
// with an answer.
func (r *run) mayGoOn() bool {
	return r.life.State.Paused == nil && r.inbox.invoke != nil || r.life.GoesOn()
}

// goOn continues with what arrived while the run rested. What was accepted counts also when the run has been cancelled
// since: it is in the state that a retry goes on from.
func (r *run) goOn(ctx workflow.Context) {
	r.idleEnds, r.idled = time.Time{}, false
	invoke, failed := r.inbox.invoke, r.failure != nil
	in := r.takeInput()
	if failed {
		defer r.suspect() // as a run that follows a failed one
		r.behindFrom = workflow.Now(ctx)
	}
	defer r.drainFirst()
	if invoke == nil {
		r.start(ctx, in, false)
		return
	}
	if invoke.Settings != nil {
		r.in.Set(*invoke.Settings)
		r.openNotices(ctx)
	}
	if invoke.State != nil {
		thread, err := r.earlier(invoke.State)
		if err != nil {
			r.failure = err // the validator has read it already
			return
		}
		r.newest = r.thread
		r.thread, r.loop, r.suspectStep = thread, nil, -1
		r.life.Reopen(r.program.OpenQuestions(thread))
	}
	r.answer(ctx, invoke.ID, in, invoke.State != nil, invoke.Asked, failed)
}

// earlier reads a state of the thread that a client chose, or copies the newest. What is made from it is numbered on
// from what the thread has, so that no two checkpoints have one id.
func (r *run) earlier(state pregel.Value) (*pregel.Thread, error) {
	if state == nil {
		return r.thread.Copy(), nil
	}
	thread, err := r.program.DecodeThread(state)
	if err != nil {
		return nil, err
	}
	thread.After(r.thread)
	return thread, nil
}
