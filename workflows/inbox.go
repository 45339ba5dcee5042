package workflows

import (
	"cmp"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// inbox notes what arrived for the main coroutine and is no part of the run's life.
type inbox struct {
	invoke *protocol.InvokeRequest
	edits  []*edit
	// unread are answers by signal that were received, and wait for the thread to be looked at.
	unread []protocol.ResumeRequest
	read   int // signals, so far
}

// changing reports whether the thread is about to change, so that its open questions may not be open any more.
func (b *inbox) changing() bool { return b.invoke != nil || len(b.edits) > 0 }

// handler is an update's handler and its validator.
type handler struct {
	name, about    string
	does, validate any
}

// takes is the handler of a command whose reply is an R.
func takes[C life.Command, R any](r *run, name, about string) handler {
	return handler{name, about, func(ctx workflow.Context, c C) (R, error) {
		turn := r.take(ctx, request{Command: c})
		reply, _ := turn.Reply.(R)
		return reply, turn.Err
	}, func(_ workflow.Context, c C) error { return r.check(c) }}
}

// check refuses in a validator, which leaves no event, what would be refused.
func (r *run) check(c life.Command) error {
	return refused(r.life.Check(c, r.governs != nil && r.governs()))
}

// checkRoom is check for what makes a run that rests go on.
func (r *run) checkRoom(ctx workflow.Context, c life.Command) error {
	if r.life.Again(c) {
		return nil
	}
	return cmp.Or(r.noRoom(ctx), r.check(c))
}

// handle registers the run's handlers. It is called before anything blocks, so that nothing that arrived is missed.
func (r *run) handle(ctx workflow.Context) error {
	for _, h := range []handler{
		takes[protocol.ResumeRequest, protocol.ResumeReply](r, protocol.UpdateResume, "Answers a question; without a question, passes a breakpoint."),
		{protocol.UpdateInvoke, "Gives a run that rests something new to do; new input abandons open questions.",
			func(ctx workflow.Context, req protocol.InvokeRequest) error {
				return r.take(ctx, request{Command: r.invocation(req, req.Asked != nil && req.Asked.Token != "")}).Err
			},
			func(ctx workflow.Context, req protocol.InvokeRequest) error {
				return r.checkRoom(ctx, r.invocation(req, true))
			}},
		{protocol.UpdateState, "Writes to the state of a run that rests.", r.onUpdateState,
			func(ctx workflow.Context, req protocol.UpdateStateRequest) error {
				return r.checkRoom(ctx, r.updating(req, true, nil))
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
		takes[protocol.CancelRequest, protocol.CancelReply](r, protocol.UpdateCancel, "Ends the run and keeps, drops or undoes what it did."),
		takes[protocol.PauseRequest, protocol.PauseReply](r, protocol.UpdatePause, "Pauses the run: no new task starts. With unpause, lets it go on."),
		takes[protocol.EventRequest, protocol.EventReply](r, protocol.UpdateEvent, "Sends an event to every task of the thread that waits for it."),
	} {
		err := workflow.SetUpdateHandlerWithOptions(ctx, h.name, h.does,
			workflow.UpdateHandlerOptions{Validator: h.validate, Description: h.about})
		if err != nil {
			return err
		}
	}
	workflow.Go(ctx, r.receiveAnswers)
	workflow.Go(ctx, func(ctx workflow.Context) { receive[protocol.CancelRequest](ctx, r, cancelSignals(ctx)) })
	workflow.Go(ctx, func(ctx workflow.Context) { receive[protocol.PauseRequest](ctx, r, pauseSignals(ctx)) })
	workflow.Go(ctx, func(ctx workflow.Context) { receive[protocol.EventRequest](ctx, r, eventSignals(ctx)) })
	workflow.Go(ctx, r.receiveViews)
	workflow.Go(ctx, r.verifyReplies)
	return r.handleQueries(ctx)
}

func signals(ctx workflow.Context, name, about string) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: about})
}

func cancelSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return signals(ctx, protocol.SignalCancel, "Ends the run and keeps, drops or undoes what it did.")
}

func pauseSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return signals(ctx, protocol.SignalPause, "Pauses the run or lets it go on, without waiting for the reply.")
}

func eventSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return signals(ctx, protocol.SignalEvent, "Sends an event without waiting for the reply.")
}

func resumeSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return signals(ctx, protocol.SignalResume, "Answers a question without waiting for the reply.")
}

// receive takes in commands by signal: since a signal gets no reply, a refusal is kept to be seen.
func receive[C life.Command](ctx workflow.Context, r *run, channel workflow.ReceiveChannel) {
	for {
		var c C
		if more := channel.Receive(ctx, &c); !more {
			return
		}
		r.take(ctx, request{Command: c, silent: true})
	}
}

// readEvents takes in the events by signal that nobody has read when the run ends: what they bring would be gone.
func (r *run) readEvents(ctx workflow.Context) {
	var req protocol.EventRequest
	for channel := workflow.GetSignalChannel(ctx, protocol.SignalEvent); channel.ReceiveAsync(&req); req = (protocol.EventRequest{}) {
		r.take(ctx, request{Command: req, silent: true, now: true})
	}
}

// receiveAnswers holds answers by signal to the same checks as those by update.
func (r *run) receiveAnswers(ctx workflow.Context) {
	channel := resumeSignals(ctx)
	for {
		var req protocol.ResumeRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		r.inbox.unread = append(r.inbox.unread, req)
		// What is open is not known while the thread is being changed.
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() || len(r.inbox.unread) == 0 })
		r.readAnswers(ctx, nil)
	}
}

// readAnswers looks at the answers by signal that were received, and at those in channel unless that is nil.
func (r *run) readAnswers(ctx workflow.Context, channel workflow.ReceiveChannel) {
	for {
		var req protocol.ResumeRequest
		switch {
		case len(r.inbox.unread) > 0:
			req = r.inbox.unread[0]
			r.inbox.unread = r.inbox.unread[1:]
		case channel == nil || !channel.ReceiveAsync(&req):
			return
		}
		r.take(ctx, request{Command: req, silent: true})
		if r.inbox.read++; r.inbox.read%signalsAtOnce == 0 {
			GiveWay(ctx)
		}
	}
}

// signalsAtOnce is how many signals are read before other coroutines have a turn: see deliveriesAtOnce.
const signalsAtOnce = 100

// receiveViews notes who says to have looked at an approval's question.
func (r *run) receiveViews(ctx workflow.Context) {
	channel := signals(ctx, protocol.SignalViewed, "Notes that somebody has looked at a question that asks for an approval.")
	for {
		var req protocol.ViewRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
		r.viewed(ctx, req)
	}
}

func (r *run) viewed(ctx workflow.Context, req protocol.ViewRequest) {
	r.life.Viewed(req, workflow.Now(ctx))
	r.act(ctx, r.life.Actions())
}

// readViews takes in the views that nobody has read when the run ends.
func (r *run) readViews(ctx workflow.Context) {
	var req protocol.ViewRequest
	for channel := workflow.GetSignalChannel(ctx, protocol.SignalViewed); channel.ReceiveAsync(&req); req = (protocol.ViewRequest{}) {
		r.viewed(ctx, req)
	}
}

// refuseBad turns a message away that the engine refuses; before says what became of the thread, "" for nothing to say.
// The engine's error goes along, so that whoever sent the message knows of what kind it is.
func (r *run) refuseBad(before string, err error) error {
	return temporal.NewNonRetryableApplicationError(before+err.Error(), protocol.ErrTypeBadUpdate, nil, pregel.AsNodeError(r.in.Graph, "", err))
}
