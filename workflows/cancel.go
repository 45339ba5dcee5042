package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// cancelled ends a cancelled run after its tasks have ended.
func (r *run) cancelled(ctx workflow.Context) error {
	GiveWay(ctx)
	r.keepAnswers(ctx)
	r.act(ctx, r.life.Cancelled("the server was asked to cancel it", workflow.Now(ctx)))
	if r.life.CancelMode() != protocol.CancelKeep {
		r.drop(ctx)
	}
	if r.life.CancelMode() == protocol.CancelCompensate {
		(&compensation{r.people, r.room, r.doubt}).compensate(ctx)
	}
	r.listed.showEnd(ctx, protocol.StatusCancelled)
	r.replied(ctx)
	r.keepAnswers(ctx) // of those who were just told
	var output map[string]pregel.Value
	if r.life.CancelMode() == protocol.CancelKeep && r.threadStatus() == pregel.StatusDone {
		output = r.output() // it was told to end when it had
	}
	return temporal.NewCanceledError(r.handBack(ctx, r.result(), output))
}

// cancelledBefore ends a run that only cleans up behind the one before it.
func (r *run) cancelledBefore(ctx workflow.Context) error {
	end := r.end
	r.end = nil // it ends as it is
	r.failure = r.take(ctx, request{Command: r.in.Cancel.CancelRequest, unseen: true}).Err
	if r.end = end; r.failure != nil {
		return r.failed(ctx)
	}
	r.began(ctx, r.durability())
	r.invoked = false // it has not finished, whatever is left to run
	return r.cancelled(ctx)
}

// drop forgets the superstep under way, and an earlier state that the run was to go on with.
func (r *run) drop(ctx workflow.Context) {
	if r.newest != nil {
		r.thread, r.newest = pregel.Newer(r.newest, r.thread), nil
	}
	r.program.Drop(r.thread)
	r.loop, r.failure = nil, nil
	r.life.ForgetWaits()
	if r.sink != nil {
		r.sink.Ended(position(ctx), pregel.StatusDrained, r.thread)
	}
}
