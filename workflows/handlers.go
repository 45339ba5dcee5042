package workflows

import (
	"cmp"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter/life"
	"superstep.dev/workflows/protocol"
)

// handler is an update's handler and its validator.
type handler struct {
	name, about    string
	does, validate any
}

// takes is the handler of a command whose reply is an R.
func takes[C life.Command, R any](r *people, name, about string) handler {
	return handler{name, about, func(ctx workflow.Context, c C) (R, error) {
		turn := r.take(ctx, request{Command: c})
		reply, _ := turn.Reply.(R)
		return reply, turn.Err
	}, func(_ workflow.Context, c C) error { return r.check(c) }}
}

// check refuses in a validator, which leaves no event, what would be refused.
func (p *people) check(c life.Command) error {
	return refused(p.life.Check(c, p.gate.governed()))
}

// checkRoom is check for what makes a run that rests go on.
func (r *run) checkRoom(ctx workflow.Context, c life.Command) error {
	if r.life.Again(c) {
		return nil
	}
	return cmp.Or(r.room.refuse(ctx), r.check(c))
}

// handle registers the run's handlers. It is called before anything blocks, so that nothing that arrived is missed.
func (r *run) handle(ctx workflow.Context) error {
	for _, h := range []handler{
		takes[protocol.ResumeRequest, protocol.ResumeReply](r.people, protocol.UpdateResume, "Answers a question; without a question, passes a breakpoint."),
		{protocol.UpdateInvoke, "Gives a run that rests something new to do; new input abandons open questions.",
			func(ctx workflow.Context, req protocol.InvokeRequest) error {
				return r.take(ctx, request{Command: r.invocation(req, req.Asked.Token != "")}).Err
			},
			func(ctx workflow.Context, req protocol.InvokeRequest) error {
				return r.checkRoom(ctx, r.invocation(req, true))
			}},
		{protocol.UpdateState, "Writes to the state of a run that rests.", r.updates.onUpdateState,
			func(ctx workflow.Context, req protocol.UpdateStateRequest) error {
				return r.checkRoom(ctx, r.updates.updating(req, true, nil))
			}},
		{protocol.UpdateRetry, "Lets a run go on that failed and was held open.",
			func(ctx workflow.Context, req protocol.RetryRequest) error {
				return r.take(ctx, request{Command: req}).Err
			},
			func(ctx workflow.Context, req protocol.RetryRequest) error { return r.checkRoom(ctx, req) }},
		{protocol.UpdateDrain, "Asks the run to stop before its next superstep.",
			func(ctx workflow.Context, req protocol.DrainRequest) error {
				return r.take(ctx, request{Command: req}).Err
			},
			func(_ workflow.Context, req protocol.DrainRequest) error { return r.check(req) }},
		takes[protocol.CancelRequest, protocol.CancelReply](r.people, protocol.UpdateCancel, "Ends the run and keeps, drops or undoes what it did."),
		takes[protocol.PauseRequest, protocol.PauseReply](r.people, protocol.UpdatePause, "Pauses the run: no new task starts. With unpause, lets it go on."),
		takes[protocol.EventRequest, protocol.EventReply](r.people, protocol.UpdateEvent, "Sends an event to every task of the thread that waits for it."),
	} {
		err := workflow.SetUpdateHandlerWithOptions(ctx, h.name, h.does,
			workflow.UpdateHandlerOptions{Validator: h.validate, Description: h.about})
		if err != nil {
			return err
		}
	}
	each(ctx, protocol.SignalResume, "Answers a question without waiting for the reply.", r.receiveAnswer)
	receive[protocol.CancelRequest](ctx, r.people, protocol.SignalCancel, "Ends the run and keeps, drops or undoes what it did.")
	receive[protocol.PauseRequest](ctx, r.people, protocol.SignalPause, "Pauses the run or lets it go on, without waiting for the reply.")
	receive[protocol.EventRequest](ctx, r.people, protocol.SignalEvent, "Sends an event without waiting for the reply.")
	each(ctx, protocol.SignalViewed, "Notes that somebody has looked at a question that asks for an approval.", func(ctx workflow.Context, req protocol.ViewRequest) {
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
		r.viewed(ctx, req)
	})
	workflow.Go(ctx, r.verifyReplies)
	return (&view{r.people}).handle(ctx, r.leaves)
}
