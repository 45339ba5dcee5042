package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/trail"
)

// onDrain asks a run that is under way to stop before its next superstep. One that rests has stopped;
// one that was paused in a superstep has not.
func (r *run) onDrain(ctx workflow.Context, req DrainRequest) error {
	if r.inbox.again(UpdateDrain, req.ID, nil) {
		return nil // it may have stopped the run once
	}
	by, err := r.proven(ctx, request{Control: approval.Control{Op: approval.OpDrain}, by: req.By, token: req.Token})
	if err != nil {
		return err
	}
	r.inbox.took(UpdateDrain, req.ID, nil)
	if !r.standing() || r.inbox.waiting() || len(r.tasks.queue) > 0 {
		r.inbox.drain = req.Reason
		r.audit(ctx, trail.Drained(by, req.Reason))
	}
	return nil
}

func drainRefusal(req DrainRequest) error {
	if len(req.Reason) == 0 || len(req.Reason) > maxReasonBytes || len(req.ID) > maxNameBytes || len(req.By) > maxNameBytes {
		return refuse(ErrTypeBadUpdate, "a drain has a reason of 1 to %d bytes, and an id and a name of at most %d", maxReasonBytes, maxNameBytes)
	}
	return nil
}

// drain asks the engine to stop before its next superstep, when somebody asked the run.
func (r *run) drain() {
	if r.inbox.drain != "" {
		r.loop.Drain(r.inbox.drain)
	}
}

// drainVersion is the change since which a drain outlasts a superstep that has its answers already.
const drainVersion = "drain-past-answers"

// drainsOn reports whether a drain is still to come, though nothing is under way: the superstep has its answers already,
// so that the run does not rest, and goes on with it.
func (r *run) drainsOn(ctx workflow.Context) bool {
	return r.inbox.drain != "" && r.failure == nil && r.inbox.waiting() && r.drainsLate(ctx)
}

// drainFirst tells an engine that goes on what was asked before: a segment would be interrupted for that at once.
func (r *run) drainFirst(ctx workflow.Context) {
	if r.inbox.drain != "" && r.loop != nil && r.drainsLate(ctx) {
		r.drain()
		r.inbox.drain = ""
	}
}

// drainsLate is false in runs from before there was such a thing.
func (r *run) drainsLate(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, drainVersion, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}
