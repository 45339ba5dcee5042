package workflows

import (
	"cmp"
	"errors"
	"slices"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/stackroom"
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
	stackroom.Grow() // of the update's coroutine
	return refused(p.life.Check(c, p.gate.governed()))
}

// checkRoom is check for what makes a run that rests go on.
func (r *run) checkRoom(ctx workflow.Context, c life.Command) error {
	if r.life.Again(c) {
		return nil
	}
	return cmp.Or(r.over(), r.room.refuse(ctx), r.check(c))
}

// handle registers the run's handlers. It is called before anything blocks, so that nothing that arrived is missed. The SDK lets all coroutines
// have a turn at each; those that a run begins with come last, so that there is none yet.
func (r *run) handle(ctx workflow.Context) error {
	for _, h := range r.updateHandlers() {
		err := workflow.SetUpdateHandlerWithOptions(ctx, h.name, h.does,
			workflow.UpdateHandlerOptions{Validator: h.validate, Description: h.about})
		if err != nil {
			return err
		}
	}
	listen(ctx, []*listener{
		each(ctx, r.people, protocol.SignalResume, "Answers a question without waiting for the reply.", r.receiveAnswer),
		receive[protocol.CancelRequest](ctx, r.people, protocol.SignalCancel, "Ends the run and keeps, drops or undoes what it did."),
		receive[protocol.PauseRequest](ctx, r.people, protocol.SignalPause, "Pauses the run or lets it go on, without waiting for the reply."),
		receive[protocol.EventRequest](ctx, r.people, protocol.SignalEvent, "Sends an event without waiting for the reply."),
		each(ctx, r.people, protocol.SignalViewed, "Notes that somebody has looked at a question that asks for an approval.", func(ctx workflow.Context, req protocol.ViewRequest) {
			_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
			r.viewed(ctx, req)
		}),
		{waits: func() bool { return r.verifies(ctx) }, does: r.verifyReplies},
	})
	return (&view{r.people}).handle(ctx, r.leaves)
}

// updateHandlers are what the run does for updates.
func (r *run) updateHandlers() []handler {
	return []handler{
		{protocol.UpdateResume, "Answers a question; without a question, passes a breakpoint.",
			func(ctx workflow.Context, req protocol.ResumeUpdate) (reply protocol.ResumeReply, err error) {
				turn := r.take(ctx, request{Command: req.ResumeRequest})
				reply.AnswerReply, _ = turn.Reply.(life.AnswerReply)
				if turn.Err == nil && req.Rest {
					reply.Rest = r.waiters.awaitBeside(ctx, req.Has)
				}
				return reply, turn.Err
			},
			func(_ workflow.Context, req protocol.ResumeUpdate) error { return r.check(req.ResumeRequest) }},
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
		{protocol.UpdateRest, "Returns when the run rests or ends.", r.waiters.wait, r.waiters.refuse},
		{protocol.UpdateInvoke, "Gives a run that rests something new to do; new input abandons open questions.",
			func(ctx workflow.Context, req protocol.InvokeRequest) (reply protocol.RestReply, err error) {
				err = r.take(ctx, request{Command: r.invocation(req, req.Asked.Token != "")}).Err
				if err == nil && req.Rest {
					reply = r.waiters.await(ctx, req.Has, req.Input.Value)
				}
				return reply, err
			},
			func(ctx workflow.Context, req protocol.InvokeRequest) error {
				return r.checkRoom(ctx, r.invocation(req, true))
			}},
	}
}

// listener does something about what arrives, while something waits for it.
type listener struct {
	waits func() bool
	does  func(workflow.Context)
	busy  bool
}

// begins reports whether there is something for it to begin with.
func (l *listener) begins() bool { return !l.busy && l.waits() }

// listen gives each listener that something waits for a coroutine of its own: none holds up another one. Together they have one while
// nothing waits, since the SDK gives every coroutine a turn, some eight times in a short run, whatever happens.
func listen(ctx workflow.Context, all []*listener) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		open, _ := workflow.NewDisconnectedContext(ctx) // a run that was cancelled is told things, too
		for {
			_ = workflow.Await(open, func() bool { return slices.ContainsFunc(all, (*listener).begins) })
			for _, l := range all {
				if !l.begins() {
					continue
				}
				l.busy = true
				workflow.Go(ctx, func(ctx workflow.Context) {
					defer func() { l.busy = false }()
					l.does(ctx)
				})
			}
		}
	})
}

// receive takes in commands by signal: since a signal gets no reply, a refusal is kept to be seen.
func receive[C life.Command](ctx workflow.Context, p *people, name, about string) *listener {
	return each(ctx, p, name, about, func(ctx workflow.Context, c C) { p.take(ctx, request{Command: c, silent: true}) })
}

// each does something about each signal of that name, one after the other.
func each[T any](ctx workflow.Context, p *people, name, about string, do func(workflow.Context, T)) *listener {
	channel := workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: about})
	return &listener{waits: func() bool { return channel.Len() > 0 }, does: func(ctx workflow.Context) {
		for {
			got, ok := receiveSignal[T](ctx, p, channel)
			if !ok {
				return
			}
			do(ctx, got)
		}
	}}
}

// unread does something about the signals that nobody has received when the run ends: what they bring would be gone.
func unread[T any](ctx workflow.Context, p *people, name string, do func(T)) {
	channel := workflow.GetSignalChannel(ctx, name)
	for {
		got, ok := receiveSignal[T](ctx, p, channel)
		if !ok {
			return
		}
		do(got)
	}
}

// readUnread takes in the events and views that nobody has received.
func (p *people) readUnread(ctx workflow.Context) {
	unread(ctx, p, protocol.SignalEvent, func(req protocol.EventRequest) {
		p.take(ctx, request{Command: req, silent: true, now: true})
	})
	unread(ctx, p, protocol.SignalViewed, func(req protocol.ViewRequest) { p.viewed(ctx, req) })
}

// receiveAnswer holds an answer by signal to the same checks as those by update.
//
// What is open is not known while the thread is being changed, nor while outcomes wait to be taken in: a query shows the
// questions of outcomes that no workflow task has handled yet, so an answer may come with the workflow task that handles the
// outcome. Who sends a signal is told of no refusal, and sends it once.
func (r *run) receiveAnswer(ctx workflow.Context, req protocol.ResumeRequest) {
	r.inbox.unread = append(r.inbox.unread, req)
	_ = workflow.Await(ctx, func() bool {
		return len(r.inbox.unread) == 0 || !r.inbox.changing() && !(r.behind() && slices.ContainsFunc(r.inbox.unread, r.isEarly))
	})
	r.readAnswers(ctx, nil)
}

// behind reports whether outcomes have arrived that the run has not taken in.
func (r *run) behind() bool { return r.tasks.behind() || r.segments.behind() }

// isEarly reports whether an answer would be refused with what an outcome may change.
func (r *run) isEarly(req protocol.ResumeRequest) bool { return protocol.RefusedEarly(r.check(req)) }

// readAnswers looks at the answers by signal that were received, and at those in channel unless that is nil.
func (p *people) readAnswers(ctx workflow.Context, channel workflow.ReceiveChannel) {
	for {
		var req protocol.ResumeRequest
		switch {
		case len(p.inbox.unread) > 0:
			req = p.inbox.unread[0]
			p.inbox.unread = p.inbox.unread[1:]
		case channel == nil:
			return
		default:
			var ok bool
			if req, ok = receiveSignal[protocol.ResumeRequest](ctx, p, channel); !ok {
				return
			}
		}
		p.take(ctx, request{Command: req, silent: true})
		if p.inbox.read++; p.inbox.read%signalsAtOnce == 0 {
			GiveWay(ctx)
		}
	}
}

// signalsAtOnce is how many signals are read before other coroutines have a turn: see deliveriesAtOnce.
const signalsAtOnce = 100

// viewed notes who says to have looked at an approval's question.
func (p *people) viewed(ctx workflow.Context, req protocol.ViewRequest) {
	p.life.Viewed(req, workflow.Now(ctx))
	p.act(ctx, p.life.Actions())
}

// invocation is what a run that rests is to do next, as a command. With may it is tried before it is taken: its validator does
// that, and who had to wait for a gate does it again.
func (r *run) invocation(req protocol.InvokeRequest, may bool) life.Act {
	act := life.Act{Name: protocol.UpdateInvoke, ID: req.ID, By: req.Asked.By, Token: req.Asked.Token}
	if may {
		act.May = func() error { return r.invokeRefusal(req) }
	}
	control, err := r.invokeControl(req)
	if act.What = control; err != nil {
		act.May = func() error { return err }
	}
	act.Do = func(by life.Actor) any {
		req.Asked = req.Asked.ProvenBy(by)
		r.inbox.invoke = &req
		return nil
	}
	return act
}

// invokeControl is what an invocation does to the run, for those who may have to prove that they may; none for new input.
func (r *run) invokeControl(req protocol.InvokeRequest) (approval.Control, error) {
	thread, err := r.earlier(req.State)
	if err != nil {
		return approval.Control{}, r.refuseBad("", err)
	}
	b := r.beginning(thread, pregel.Input(req.Input), req.State != nil, r.failure != nil)
	b.Budget = req.Settings != nil && req.Settings.Options.Budget != nil
	return oneControl(b.Ops(!r.nothingLeft()), req.Asked.Token)
}

// oneControl is the one thing that is asked for. Where tokens are taken, which are for one thing each, several are refused.
func oneControl(ops []approval.Control, token string) (approval.Control, error) {
	switch {
	case len(ops) == 0:
		return approval.Control{}, nil
	case len(ops) > 1 && token != "":
		return approval.Control{}, protocol.Refuse(protocol.ErrTypeBadUpdate, "a token is for one thing, and this is to %s and to %s: do one after the other",
			ops[0].Op, ops[1].Op)
	}
	return ops[0], nil
}

// unfit refuses an input that the graph's functions here do not take, and breakpoints at nodes that there are not.
func (r *run) unfit(req protocol.InvokeRequest) error {
	if req.Graph != "" && req.Graph != r.in.Graph {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "thread %q belongs to graph %q, not to %q", r.life.ThreadID(), r.in.Graph, req.Graph)
	}
	if req.Input.Value != nil && r.served != nil && r.served.CheckInput != nil {
		if err := r.served.CheckInput(req.Input.Value); err != nil {
			return protocol.Refuse(protocol.ErrTypeBadUpdate, "%v", err)
		}
	}
	if req.Settings == nil {
		return nil
	}
	if name := req.Settings.UnknownNode(r.in.Spec); name != "" {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "the breakpoint at %q: there is no such node, there are %s", name, protocol.NodeNames(r.in.Spec))
	}
	return nil
}

// invokeRefusal says why a run cannot take new input now. It tries the input on a copy of the thread, so that a run
// never ends with an input half taken that its engine refuses at once. It changes nothing.
func (r *run) invokeRefusal(req protocol.InvokeRequest) error {
	if err := boundedInvoke(req, r.in.Found); err != nil {
		return err
	}
	if err := boundedAsked(req.Asked); err != nil {
		return err
	}
	if err := r.over(); err != nil {
		return err
	}
	if req.Begun {
		return protocol.Refuse(protocol.ErrTypeInputWanted, "the run has not begun with this request: send it with its input")
	}
	if r.life.State.Paused != nil {
		return protocol.Refuse(protocol.ErrTypeBusy, "%s", r.life.PausedBy())
	}
	if err := r.unfit(req); err != nil {
		return err
	}
	if !r.standing() || r.waiting() || r.inbox.changing() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is under way: wait until it waits or ends, or cancel it")
	}
	thread, err := r.earlier(req.State)
	if err != nil {
		return r.refuseBad("", err)
	}
	for _, a := range life.AnswersTo(r.program.OpenQuestions(thread), req.Input.Resume) {
		for _, q := range r.program.OpenQuestions(thread) {
			if q.ID != a.QuestionID {
				continue
			}
			if err := life.InputRefusal(q, a.Value); err != nil {
				return err
			}
		}
	}
	tried := engine{in: r.in}
	if req.Settings != nil {
		tried.in.Set(*req.Settings)
	}
	loop, err := r.program.Start(thread, pregel.Input(req.Input), tried.options(), req.State != nil, nil)
	if err == nil && loop.Status() == pregel.StatusFailed {
		err = loop.Err()
	}
	var spent *pregel.BudgetError
	if errors.As(err, &spent) {
		return nil // so it was answered
	}
	if err != nil {
		return r.refuseBad("", err)
	}
	return nil
}
