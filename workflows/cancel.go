package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// cancellation is what a run knows of its being cancelled.
type cancellation struct {
	asked *protocol.Cancellation // nil for a plain one
	by    trail.Actor            // who asked
	// begun says that the run ends as asked for: it is too late for another way.
	begun bool
	// enough says that somebody wants the run to end without more being undone.
	enough bool
	seen   []string // the ids of requests, the latest of them
	// undoing says that effects are being undone, of which parked are those that people have to decide about.
	undoing bool
	parked  []*parked
	// suspect says that an earlier run may have begun to undo effects without a trace.
	suspect bool
}

// maxCancelIDs bounds the requests that are recognised when they come again.
const maxCancelIDs = 100

// receiveCancels takes in requests to end the run. The first ends the context with cancel.
func (r *run) receiveCancels(ctx workflow.Context, cancel func()) {
	channel := cancelSignals(ctx)
	for {
		var req protocol.CancelRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		by, err := r.provenSignal(ctx, cancelling(req))
		why := ""
		if err == nil {
			why = r.takeCancel(ctx, req, by)
		} else {
			why = err.Error()
		}
		if why != "" {
			r.inbox.refuse(protocol.Refused{Question: protocol.SignalCancel, By: named(req.By), Reason: why, At: workflow.Now(ctx)})
			continue
		}
		cancel()
	}
}

// takeCancel takes a request in, or says why it cannot be done.
func (r *run) takeCancel(ctx workflow.Context, req protocol.CancelRequest, by trail.Actor) (refusal string) {
	enough, asked := r.cancel.enough, r.cancel.asked
	req.By = by.Name()
	if refusal = r.cancel.take(req); refusal != "" {
		return refusal
	}
	if r.cancel.asked != asked {
		r.cancel.by = by
	}
	if r.cancel.enough && !enough {
		r.audit(ctx, trail.Cancelled(by, string(req.Mode), req.Reason))
	}
	return ""
}

func cancelSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, protocol.SignalCancel,
		workflow.SignalChannelOptions{Description: "Ends the run and keeps, drops or undoes what it did."})
}

// take takes a request in, or says why it cannot be done.
func (c *cancellation) take(req protocol.CancelRequest) (refusal string) {
	switch {
	case !req.Mode.Valid() || len(req.ID) > protocol.MaxNameBytes || len(req.By) > protocol.MaxNameBytes || len(req.Reason) > protocol.MaxReasonBytes:
		return "a run is cancelled in one of the modes keep, drop and compensate, with a reason of at most 1 KiB"
	case req.ID != "" && slices.Contains(c.seen, req.ID):
		return ""
	}
	if c.seen = append(c.seen, req.ID); len(c.seen) > maxCancelIDs {
		c.seen = append(c.seen[:0:0], c.seen[1:]...)
	}
	switch {
	case c.begun && c.mode() == protocol.CancelCompensate && req.Mode == protocol.CancelKeep:
		c.enough = true
	case c.begun && req.Mode != c.mode():
		return "the run is being cancelled with mode " + string(c.mode()) + " already; " + string(req.Mode) + " came too late"
	case !c.begun && (c.asked == nil || req.Mode.Above(c.asked.Mode)):
		c.asked = &protocol.Cancellation{Mode: req.Mode, Reason: req.Reason, By: req.By}
	}
	return ""
}

func (c *cancellation) mode() protocol.CancelMode {
	if c.asked == nil {
		return protocol.CancelKeep
	}
	return c.asked.Mode
}

// drops reports whether the superstep under way is going to be forgotten.
func (c *cancellation) drops() bool { return c.mode() != protocol.CancelKeep && !c.undoing }

// cancelled ends a cancelled run after its tasks have ended.
func (r *run) cancelled(ctx workflow.Context) error {
	GiveWay(ctx)
	r.keepAnswers(ctx)
	r.auditCancel(ctx)
	r.withdrawAll(ctx, trail.CancelledRun)
	r.cancel.begun = true
	if r.cancel.mode() != protocol.CancelKeep {
		r.drop(ctx)
	}
	if r.cancel.mode() == protocol.CancelCompensate {
		r.compensate(ctx)
	}
	r.showEnd(ctx, protocol.StatusCancelled)
	r.replied(ctx)
	r.keepAnswers(ctx) // of those who were just told
	var output map[string]pregel.Value
	if r.cancel.mode() == protocol.CancelKeep && r.stands() == pregel.StatusDone {
		output = r.output() // it was told to end when it had
	}
	return temporal.NewCanceledError(r.handBack(ctx, r.result(), output))
}

// auditCancel notes how the run ends, and who asked for that.
func (r *run) auditCancel(ctx workflow.Context) {
	asked := r.cancel.asked
	if asked == nil { // Temporal alone was told
		asked = &protocol.Cancellation{Mode: protocol.CancelKeep, Reason: "the server was asked to cancel it"}
	}
	r.audit(ctx, trail.Cancelled(r.cancel.by, string(asked.Mode), asked.Reason))
}

// cancelledBefore ends a run that only cleans up behind the one before it.
func (r *run) cancelledBefore(ctx workflow.Context) error {
	if r.failure = r.provenCancel(ctx); r.failure != nil {
		return r.failed(ctx)
	}
	r.began(ctx, r.durability())
	r.invoked = false // it has not finished, whatever is left to run
	r.cancel.suspect = r.in.Cancel.Suspect
	return r.cancelled(ctx)
}

// drop forgets the superstep under way, and an earlier state that the run was to go on with.
func (r *run) drop(ctx workflow.Context) {
	if r.newest != nil {
		r.thread, r.newest = pregel.Newer(r.newest, r.thread), nil
	}
	r.program.Drop(r.thread)
	r.loop, r.failure = nil, nil
	r.events.Due = nil // who waits again begins anew
	if r.sink != nil {
		r.sink.Ended(position(ctx), pregel.StatusDrained, r.thread)
	}
}

// asks are the questions that the run asks now: those of its tasks, or about effects that could not be undone.
func (r *run) asks() []pregel.OpenQuestion {
	if !r.cancel.undoing {
		return r.program.OpenQuestions(r.thread)
	}
	var out []pregel.OpenQuestion
	for _, p := range r.cancel.parked {
		out = append(out, p.question)
	}
	return out
}
