package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// maxPausesSeen bounds the ids of requests that a run remembers.
const maxPausesSeen = 100

// pauseState is what the next execution of the run has to know; nil when nobody ever paused it.
func (r *run) pauseState() *protocol.PauseState {
	if r.paused == nil && len(r.pausesSeen) == 0 {
		return nil
	}
	return &protocol.PauseState{Paused: r.paused, Seen: r.pausesSeen}
}

// onPause pauses the run, or lets it go on.
func (r *run) onPause(ctx workflow.Context, req protocol.PauseRequest) (protocol.PauseReply, error) {
	if slices.Contains(r.pausesSeen, req.ID) {
		return protocol.PauseReply{Paused: r.paused}, nil
	}
	by, err := r.proven(ctx, r.pauseRequest(req))
	if err != nil {
		return protocol.PauseReply{}, err
	}
	changed := r.pauseAs(ctx, by, req)
	return protocol.PauseReply{Paused: r.paused, Changed: changed}, nil
}

// pauseRequest is a pause as the gate is asked about it; an unpause is of this pause.
func (r *run) pauseRequest(req protocol.PauseRequest) request {
	control := approval.Control{Op: approval.OpPause}
	if req.Unpause {
		control = approval.Control{Op: approval.OpUnpause, On: r.pausedOn()}
	}
	was := r.paused
	return request{Control: control, by: req.By, token: req.Token, still: func() error {
		if req.Unpause && r.paused != was {
			return protocol.Refuse(protocol.ErrTypeBusy, "the run was unpaused, or paused anew, meanwhile: look at it")
		}
		return nil
	}}
}

// pauseAs is setPause with an entry in the audit.
func (r *run) pauseAs(ctx workflow.Context, by trail.Actor, req protocol.PauseRequest) (changed bool) {
	req.By = by.Name()
	if changed = r.setPause(ctx, req); !changed {
		return false
	}
	if req.Unpause {
		r.audit(ctx, trail.Unpaused(by, req.Reason))
	} else {
		r.audit(ctx, trail.Paused(by, req.Reason))
	}
	return true
}

// setPause reports whether the request changed anything.
func (r *run) setPause(ctx workflow.Context, req protocol.PauseRequest) bool {
	if slices.Contains(r.pausesSeen, req.ID) {
		return false
	}
	r.pausesSeen = append(r.pausesSeen, req.ID)
	if len(r.pausesSeen) > maxPausesSeen {
		r.pausesSeen = slices.Clone(r.pausesSeen[len(r.pausesSeen)-maxPausesSeen:])
	}
	if req.Unpause == (r.paused == nil) {
		return false
	}
	r.paused = nil
	noted := protocol.Pause{}
	if !req.Unpause {
		noted = protocol.Pause{By: req.By, Reason: req.Reason, At: workflow.Now(ctx)}
		r.paused = &noted
	}
	// The memo, unlike a search attribute, has room for who and why, and lists show it.
	if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoPause: noted}); err != nil {
		workflow.GetLogger(ctx).Warn("the pause is not in the memo", "error", err)
	}
	return true
}

// pauseRefusal says why a request cannot be taken; nil means it can.
func pauseRefusal(req protocol.PauseRequest) error {
	if req.ID == "" || len(req.ID) > protocol.MaxNameBytes || len(req.By) > protocol.MaxNameBytes || len(req.Reason) > protocol.MaxReasonBytes {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "a pause has an id and a name of at most %d bytes, and a reason of at most %d",
			protocol.MaxNameBytes, protocol.MaxReasonBytes)
	}
	return nil
}

// receivePauses takes in requests by signal, which nobody waits for.
func (r *run) receivePauses(ctx workflow.Context) {
	channel := pauseSignals(ctx)
	for {
		var req protocol.PauseRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		r.pauseBySignal(ctx, req)
	}
}

func pauseSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, protocol.SignalPause,
		workflow.SignalChannelOptions{Description: "Pauses the run or lets it go on, without waiting for the reply."})
}

func (r *run) pauseBySignal(ctx workflow.Context, req protocol.PauseRequest) {
	if err := pauseRefusal(req); err != nil {
		r.inbox.refuse(protocol.Refused{By: named(req.By), Reason: err.Error(), At: workflow.Now(ctx)})
		return
	}
	if slices.Contains(r.pausesSeen, req.ID) {
		return
	}
	by, err := r.provenSignal(ctx, r.pauseRequest(req))
	if err != nil {
		r.inbox.refuse(protocol.Refused{Question: protocol.SignalPause, By: named(req.By), Reason: err.Error(), At: workflow.Now(ctx)})
		return
	}
	r.pauseAs(ctx, by, req)
}

// pausedBy says who paused the run, for those who are refused for that.
func (r *run) pausedBy() string {
	text := "the run is paused"
	if r.paused.By != "" {
		text += " by " + r.paused.By
	}
	if r.paused.Reason != "" {
		text += fmt.Sprintf(" (%s)", r.paused.Reason)
	}
	return text + ": unpause it first"
}

// holdsUp reports whether the run is paused before tasks that it would start.
func (r *run) holdsUp(ctx workflow.Context) bool {
	return r.paused != nil && ctx.Err() == nil && !r.clock.expired && len(r.tasks.queue) > 0
}

// holdUp keeps a run that was paused in the middle of a superstep from starting the rest of it. Its step timeout begins
// anew afterwards: a pause is not the nodes' time. It reports false when an update of the state has
// dropped the superstep, and when the run is continued as a new one.
func (r *run) holdUp(ctx workflow.Context) bool {
	r.clock.leave()
	r.status = protocol.StatusPaused
	r.show(ctx)
	for r.paused != nil && ctx.Err() == nil && r.loop != nil {
		_ = workflow.Await(ctx, func() bool { return r.paused == nil || len(r.inbox.edits) > 0 || ctx.Err() != nil || r.due(ctx) })
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
