package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

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
				r.listed.show(ctx)
			}
			return true
		}
		r.status = r.resting()
		r.listed.show(ctx)
		paused := r.life.State.Paused
		r.awaitNews(ctx, func() bool {
			return r.mayGoOn() || r.hasNoted() || len(r.inbox.edits) > 0 || r.life.State.Paused != paused || ctx.Err() != nil || r.due(ctx) ||
				r.listed.Questions() && r.listed.shownNews != r.listed.news
		})
		if !r.idled && r.due(ctx) && r.continueAsNew(ctx) {
			return false
		}
		if r.mayGoOn() || r.waiting() && ctx.Err() != nil {
			r.status = protocol.StatusRunning
			r.listed.show(ctx)
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
		defer r.suspect() // as a run that follows a failed one
		r.doubt.since = workflow.Now(ctx)
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
		r.thread, r.loop, r.doubt.step = thread, nil, -1
		r.life.Reopen(r.program.OpenQuestions(thread))
	}
	r.answer(ctx, invoke.ID, in, invoke.State != nil, invoke.Asked, failed)
}

// staysOpen reports whether the run takes more input when nothing is left to do.
func (r *run) staysOpen() bool { return r.in.KeepOpen != 0 && !r.idled }

// awaitNews waits for a condition. A run that is kept open for some time only notices when that is over.
func (r *run) awaitNews(ctx workflow.Context, condition func() bool) {
	if !r.nothingLeft() || r.in.KeepOpen < 0 {
		_ = workflow.Await(ctx, condition)
		return
	}
	if r.idleEnds.IsZero() {
		r.idleEnds = workflow.Now(ctx).Add(time.Duration(r.in.KeepOpen) * time.Millisecond)
	}
	if left := r.idleEnds.Sub(workflow.Now(ctx)); left > 0 {
		_, _ = workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: left,
			TimerOptions: workflow.TimerOptions{Summary: "kept open"}}, condition)
	}
	r.idled = !workflow.Now(ctx).Before(r.idleEnds)
}
