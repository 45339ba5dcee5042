package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// inbox notes what arrived for the main coroutine.
type inbox struct {
	invoke   *protocol.InvokeRequest
	retry    bool // of a run that failed
	edits    []*edit
	drain    string // why the run is to stop, "" when it is not
	updates  []protocol.ResumeRequest
	signals  []protocol.ResumeRequest
	events   []pregel.Answer // the ends of waits for events
	answered []protocol.Answered
	refused  []protocol.Refused
	// unread are signals that were received, and wait for the thread to be looked at.
	unread []protocol.ResumeRequest
	read   int // signals, so far
	taken  protocol.TakenList
}

// waiting reports whether there is something for the engine to go on with.
func (b *inbox) waiting() bool {
	return b.invoke != nil || b.retry || len(b.updates)+len(b.signals)+len(b.events) > 0
}

// changing reports whether the thread is about to change, so that its open questions may not be open any more.
func (b *inbox) changing() bool { return b.invoke != nil || len(b.edits) > 0 }

// reopen forgets the answers to questions that an earlier state of the thread has open.
func (b *inbox) reopen(open []pregel.OpenQuestion) {
	kept := b.answered[:0:0]
	for _, a := range b.answered {
		if !slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == a.Question }) {
			kept = append(kept, a)
		}
	}
	b.answered = kept
}

// answers are those that arrived and that the engine was not given yet: updates first, then signals, then events, each in
// their order.
func (b *inbox) answers() (all []pregel.Answer) {
	for _, req := range slices.Concat(b.updates, b.signals) {
		all = append(all, req.All()...)
	}
	return append(all, b.events...)
}

// hasAnswers reports whether answers arrived, as opposed to new input or a bare resume.
func (b *inbox) hasAnswers() bool { return len(b.answers()) > 0 }

// hasAnswer reports whether the answer to a question arrived, and the engine was not given it yet.
func (b *inbox) hasAnswer(question string) bool {
	return slices.ContainsFunc(b.answers(), func(a pregel.Answer) bool { return a.QuestionID == question })
}

// take empties the inbox into an engine input. A bare resume only passes a breakpoint.
func (b *inbox) take() pregel.Input {
	in := pregel.Input{}
	if b.invoke != nil {
		in = pregel.Input(b.invoke.Input)
		b.invoke = nil
	}
	if all := b.answers(); len(all) > 0 {
		if in.Resume == nil {
			in.Resume = &pregel.Resume{}
		}
		in.Resume.Answers = append(in.Resume.Answers, all...)
	}
	b.updates, b.signals, b.events, b.retry = nil, nil, nil, false
	return in
}

// note keeps who answered what, the latest of them.
func (b *inbox) note(a protocol.Answered) {
	b.answered = append(b.answered, a)
	if len(b.answered) > protocol.MaxAnswers {
		b.answered = append(b.answered[:0:0], b.answered[len(b.answered)-protocol.MaxAnswers:]...)
	}
}

func (b *inbox) refuse(r protocol.Refused) {
	b.refused = append(b.refused, r)
	if len(b.refused) > maxRefused {
		b.refused = append(b.refused[:0:0], b.refused[len(b.refused)-maxRefused:]...)
	}
}

// handle registers the run's handlers; cancel ends its context. It is called before anything blocks, so that nothing that arrived is missed.
func (r *run) handle(ctx workflow.Context, cancel func()) error {
	for _, u := range []struct {
		name, about        string
		handler, validator any
	}{
		{protocol.UpdateResume, "Answers a question; without a question, passes a breakpoint.", r.onResume,
			func(_ workflow.Context, req protocol.ResumeRequest) error {
				if _, done := r.repeated(req); done || r.inbox.taken.Again(protocol.UpdateResume, req.ID, nil) {
					return nil
				}
				return cmp.Or(r.refusal(req), r.unprovenAnswer(req))
			}},
		{protocol.UpdateInvoke, "Gives a run that rests something new to do; new input abandons open questions.", r.onInvoke,
			func(ctx workflow.Context, req protocol.InvokeRequest) error {
				if r.inbox.taken.Again(protocol.UpdateInvoke, req.ID, nil) {
					return nil
				}
				if err := r.noRoom(ctx); err != nil {
					return err
				}
				if err := r.invokeRefusal(req); err != nil {
					return err
				}
				control, err := r.invokeControl(req)
				if control.Op == "" || err != nil {
					return err
				}
				return r.unproven(control.Op, tokenOf(req.Asked))
			}},
		{protocol.UpdateState, "Writes to the state of a run that rests.", r.onUpdateState,
			func(ctx workflow.Context, req protocol.UpdateStateRequest) error {
				if r.inbox.taken.Again(protocol.UpdateState, req.ID, nil) {
					return nil
				}
				if err := r.noRoom(ctx); err != nil {
					return err
				}
				return cmp.Or(r.updateRefusal(req), r.unproven(approval.OpUpdate, tokenOf(req.Asked)))
			}},
		{protocol.UpdateRetry, "Lets a run go on that failed and was held open.", r.onRetry,
			func(ctx workflow.Context, req protocol.RetryRequest) error {
				if r.inbox.taken.Again(protocol.UpdateRetry, req.ID, nil) {
					return nil
				}
				if err := r.noRoom(ctx); err != nil {
					return err
				}
				return cmp.Or(r.retryRefusal(req), r.unproven(approval.OpRetry, req.Token))
			}},
		{protocol.UpdateDrain, "Asks the run to stop before its next superstep.", r.onDrain,
			func(_ workflow.Context, req protocol.DrainRequest) error {
				return cmp.Or(drainRefusal(req), r.unproven(approval.OpDrain, req.Token))
			}},
		{protocol.UpdateCancel, "Ends the run and keeps, drops or undoes what it did.", r.onCancel(cancel),
			func(_ workflow.Context, req protocol.CancelRequest) error {
				return r.unproven(approval.OpCancel, req.Token)
			}},
		{protocol.UpdatePause, "Pauses the run: no new task starts. With unpause, lets it go on.", r.onPause,
			func(_ workflow.Context, req protocol.PauseRequest) error {
				if slices.Contains(r.pausesSeen, req.ID) {
					return nil
				}
				return cmp.Or(pauseRefusal(req), r.unproven(r.pauseRequest(req).Op, req.Token))
			}},
		{protocol.UpdateEvent, "Sends an event to every task of the thread that waits for it.", r.onEvent,
			func(_ workflow.Context, req protocol.EventRequest) error {
				if _, again := r.eventTaken(req.ID); again {
					return r.eventRefusal(req)
				}
				return cmp.Or(r.eventRefusal(req), r.unproven(approval.OpEvent, req.Token))
			}},
	} {
		err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, u.handler,
			workflow.UpdateHandlerOptions{Validator: u.validator, Description: u.about})
		if err != nil {
			return err
		}
	}
	workflow.Go(ctx, r.receiveSignals)
	workflow.Go(ctx, func(ctx workflow.Context) { r.receiveCancels(ctx, cancel) })
	workflow.Go(ctx, r.receivePauses)
	workflow.Go(ctx, r.receiveEvents)
	r.approvals.life = ctx
	workflow.Go(ctx, r.receiveViews)
	workflow.Go(ctx, r.verifySignals)
	return r.handleQueries(ctx)
}

// refuseBad turns a message away that the engine refuses; before says what became of the thread, "" for nothing to say.
// The engine's error goes along, so that whoever sent the message knows of what kind it is.
func (r *run) refuseBad(before string, err error) error {
	return temporal.NewNonRetryableApplicationError(before+err.Error(), protocol.ErrTypeBadUpdate, nil, pregel.AsNodeError(r.in.Graph, "", err))
}
