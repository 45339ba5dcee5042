package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// heldOpen reports whether the run, which failed, waits for somebody to retry it. One whose history is full cannot: its
// retry is a run of its own. Nor does one that never began, because the engine refused its input.
func (r *run) heldOpen() bool {
	var full *HistoryFullError
	return r.in.Hold && r.failure != nil && !r.refused && !errors.As(r.failure, &full)
}

// onRetry lets the run go on from where it failed.
func (r *run) onRetry(ctx workflow.Context, req protocol.RetryRequest) error {
	if r.inbox.taken.Again(protocol.UpdateRetry, req.ID, nil) {
		return nil
	}
	by, err := r.proven(ctx, request{Control: approval.Control{Op: approval.OpRetry}, by: req.By, token: req.Token,
		still: func() error { return r.retryRefusal(req) }})
	if err != nil {
		return err
	}
	r.inbox.taken.Took(protocol.UpdateRetry, req.ID, nil)
	r.inbox.retry = true
	r.audit(ctx, trail.Retried(by, req.Reason))
	return nil
}

// retryRefusal says why the run cannot be retried now; nil means it can. It changes nothing.
func (r *run) retryRefusal(req protocol.RetryRequest) error {
	switch {
	case req.ID == "" || len(req.ID) > protocol.MaxNameBytes || len(req.By) > protocol.MaxNameBytes || len(req.Reason) > protocol.MaxReasonBytes:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "a retry has an id and a name of at most %d bytes, and a reason of at most %d", protocol.MaxNameBytes,
			protocol.MaxReasonBytes)
	case r.inbox.changing() || r.inbox.retry:
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is about to go on: look where it stands then")
	case r.failure == nil || !r.standing():
		return protocol.Refuse(protocol.ErrTypeNotFailed, "the run has nothing to retry: it is %s", r.status)
	case r.paused != nil:
		return protocol.Refuse(protocol.ErrTypeBusy, "%s", r.pausedBy())
	}
	return nil
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
	return r.failure != nil && r.inbox.waiting() && r.inbox.invoke == nil && !r.inbox.retry
}

// noteAnswers puts what a run that failed was answered on record, in its thread: whatever goes on with that finds it.
func (r *run) noteAnswers(ctx workflow.Context) {
	if r.hasNoted() {
		r.keepAnswers(ctx)
	}
}
