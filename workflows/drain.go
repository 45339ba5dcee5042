package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// onDrain asks a run that is under way to stop before its next superstep. One that rests has stopped;
// one that was paused in a superstep has not.
func (r *run) onDrain(ctx workflow.Context, req protocol.DrainRequest) error {
	if r.inbox.taken.Again(protocol.UpdateDrain, req.ID, nil) {
		return nil // it may have stopped the run once
	}
	by, err := r.proven(ctx, request{Control: approval.Control{Op: approval.OpDrain}, by: req.By, token: req.Token})
	if err != nil {
		return err
	}
	r.inbox.taken.Took(protocol.UpdateDrain, req.ID, nil)
	if !r.standing() || r.inbox.waiting() || len(r.tasks.queue) > 0 {
		r.inbox.drain = req.Reason
		r.audit(ctx, trail.Drained(by, req.Reason))
	}
	return nil
}

func drainRefusal(req protocol.DrainRequest) error {
	if len(req.Reason) == 0 || len(req.Reason) > protocol.MaxReasonBytes || len(req.ID) > protocol.MaxNameBytes || len(req.By) > protocol.MaxNameBytes {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "a drain has a reason of 1 to %d bytes, and an id and a name of at most %d", protocol.MaxReasonBytes, protocol.MaxNameBytes)
	}
	return nil
}

// drain asks the engine to stop before its next superstep, when somebody asked the run.
func (r *run) drain() {
	if r.inbox.drain != "" {
		r.loop.Drain(r.inbox.drain)
	}
}

// drainsOn reports whether a drain is still to come, though nothing is under way: the superstep has its answers already,
// so that the run does not rest, and goes on with it.
func (r *run) drainsOn() bool {
	return r.inbox.drain != "" && r.failure == nil && r.inbox.waiting()
}

// drainFirst tells an engine that goes on what was asked before: a segment would be interrupted for that at once.
func (r *run) drainFirst() {
	if r.inbox.drain != "" && r.loop != nil {
		r.drain()
		r.inbox.drain = ""
	}
}
