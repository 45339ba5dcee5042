package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/workflows/protocol"
)

// onResume takes in an answer that the validator let through. It is durable now: the run goes on with it when its
// superstep waits.
func (r *run) onResume(ctx workflow.Context, req protocol.ResumeRequest) (protocol.ResumeReply, error) {
	if reply, ok := r.resumed(req); ok {
		return reply, nil
	}
	if done, ok := r.repeated(req); ok { // by signal
		return protocol.ResumeReply{Question: done.Question, Node: done.Node, Repeated: true}, nil
	}
	if r.gated(req) {
		return r.resumeGated(ctx, req)
	}
	by, err := r.proven(ctx, r.answerRequest(req))
	if err != nil {
		return protocol.ResumeReply{}, err
	}
	req.By = by.Name()
	r.auditAnswers(ctx, by, req.All())
	reply := protocol.ResumeReply{Question: req.Question, Node: r.accept(ctx, req.ID, req.All()), Call: req.Call}
	r.inbox.updates = append(r.inbox.updates, req)
	r.inbox.taken.Took(protocol.UpdateResume, req.ID, reply)
	return reply, nil
}

// resumed finds the outcome of a request by update that was taken before.
func (r *run) resumed(req protocol.ResumeRequest) (reply protocol.ResumeReply, ok bool) {
	ok = r.inbox.taken.Again(protocol.UpdateResume, req.ID, &reply)
	reply.Repeated = ok && isRepeat(req.Call, reply.Call)
	return reply, ok
}

// isRepeat reports whether a call repeats what was taken, rather than being the call that was: the server may bring that
// again, when its outcome was lost. Who does not name calls is told that a request was taken before.
func isRepeat(call, taken string) bool { return call == "" || call != taken }

// answerRequest is an answer to what asks for no approval, as the gate is asked about it.
func (r *run) answerRequest(req protocol.ResumeRequest) request {
	return request{Control: approval.Control{Op: approval.OpResume, On: req.Question}, by: req.By, token: req.Token,
		still: func() error { return r.refusal(req) }}
}

// unprovenAnswer refuses in a validator an answer that takes a token for control. Approvals take tokens of their own, and
// are not answered together with what asks for none.
func (r *run) unprovenAnswer(req protocol.ResumeRequest) error {
	gated := len(r.gatedAnswers(req))
	switch {
	case gated == 0:
		return r.unproven(approval.OpResume, req.Token)
	case gated < len(req.All()) && r.governs != nil && r.governs():
		return protocol.Refuse(protocol.ErrTypeBadAnswer, "who answers proves it, with a token for one question: answer what asks for no approval apart")
	}
	return nil
}

// receiveSignals holds answers by signal to the same checks; since a signal gets no reply, a refusal is kept to be seen.
func (r *run) receiveSignals(ctx workflow.Context) {
	channel := resumeSignals(ctx)
	for {
		var req protocol.ResumeRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		r.inbox.unread = append(r.inbox.unread, req)
		// What is open is not known while the thread is being changed.
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() || len(r.inbox.unread) == 0 })
		r.readSignals(ctx, nil)
	}
}

func resumeSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, protocol.SignalResume,
		workflow.SignalChannelOptions{Description: "Answers a question without waiting for the reply."})
}

// readSignals looks at the signals that were received, and at those in channel unless that is nil.
func (r *run) readSignals(ctx workflow.Context, channel workflow.ReceiveChannel) {
	defer r.auditRefusals(ctx, false)
	for {
		var req protocol.ResumeRequest
		switch {
		case len(r.inbox.unread) > 0:
			req = r.inbox.unread[0]
			r.inbox.unread = r.inbox.unread[1:]
		case channel == nil || !channel.ReceiveAsync(&req):
			return
		}
		r.readSignal(ctx, req)
		if r.inbox.read++; r.inbox.read%signalsAtOnce == 0 {
			GiveWay(ctx)
		}
	}
}

// signalsAtOnce is how many signals are read before other coroutines have a turn: see deliveriesAtOnce.
const signalsAtOnce = 100

func (r *run) readSignal(ctx workflow.Context, req protocol.ResumeRequest) {
	if err := r.refusal(req); err != nil { // which bounds it before anything else looks at it
		r.inbox.refuse(protocol.Refused{Question: named(req.Question), By: named(req.By), Reason: err.Error(), At: workflow.Now(ctx)})
		r.refuseReply(refusalOf(named(req.Question), err), 1)
		workflow.GetLogger(ctx).Warn("answer by signal refused", "question", named(req.Question), "reason", err.Error())
		return
	}
	if _, ok := r.repeated(req); ok || r.inbox.taken.Again(protocol.UpdateResume, req.ID, nil) {
		return
	}
	if r.gated(req) {
		r.approvals.await(req, 1)
		return
	}
	by, err := r.provenSignal(ctx, r.answerRequest(req))
	if err != nil {
		r.inbox.refuse(protocol.Refused{Question: named(req.Question), By: named(req.By), Reason: err.Error(), At: workflow.Now(ctx)})
		return
	}
	req.By = by.Name()
	r.auditAnswers(ctx, by, req.All())
	r.accept(ctx, req.ID, req.All())
	r.inbox.signals = append(r.inbox.signals, req)
}

// named is a name that somebody sent, as far as it is repeated.
func named(s string) string { return clip.Text(s, protocol.MaxNameBytes) }

// accept notes answers as given, and returns the node that asked the last of them.
func (r *run) accept(ctx workflow.Context, request string, answers []pregel.Answer) string {
	node := ""
	r.notices.look = true
	for _, a := range answers {
		for _, q := range r.asks() {
			if q.ID == a.QuestionID {
				node = q.Node
			}
		}
		r.inbox.note(protocol.Answered{Question: a.QuestionID, Node: node, RequestID: request, By: a.By, At: workflow.Now(ctx)})
	}
	return node
}

// repeated finds a request that was taken before under the same id: it gets the same outcome again.
func (r *run) repeated(req protocol.ResumeRequest) (protocol.Answered, bool) {
	if req.ID == "" {
		return protocol.Answered{}, false
	}
	for _, given := range req.All() {
		for _, a := range r.inbox.answered {
			if a.RequestID == req.ID && a.Question == given.QuestionID {
				return a, true
			}
		}
	}
	return protocol.Answered{}, false
}

// refusal says why a request cannot be taken; nil means it can. It changes nothing.
func (r *run) refusal(req protocol.ResumeRequest) error {
	answers := req.All()
	if err := boundedAnswers(req.ID, req.By, answers); err != nil {
		return err
	}
	if len(req.Call) > protocol.MaxNameBytes {
		return protocol.Refuse(protocol.ErrTypeBadAnswer, "the name of a call has at most %d bytes", protocol.MaxNameBytes)
	}
	if req.TokenBytes() > protocol.MaxTokenBytes {
		return protocol.Refuse(protocol.ErrTypeBadAnswer, "a token has at most %d bytes", protocol.MaxTokenBytes)
	}
	if _, ok := r.repeated(req); ok {
		return nil
	}
	if r.inbox.changing() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the thread's state is being changed: look what it asks then")
	}
	if len(answers) == 0 && r.paused != nil {
		return protocol.Refuse(protocol.ErrTypeBusy, "%s", r.pausedBy())
	}
	if len(answers) == 0 {
		if r.status == protocol.StatusStopped && !r.inbox.waiting() {
			return nil
		}
		return protocol.Refuse(protocol.ErrTypeUnknownQuestion, "the run does not stand at a breakpoint: name the question that you answer")
	}
	if r.cancel.drops() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is being cancelled, and what it asks is forgotten with its superstep")
	}
	open := r.asks()
	for i, a := range answers {
		if slices.ContainsFunc(answers[:i], func(b pregel.Answer) bool { return b.QuestionID == a.QuestionID }) {
			return protocol.Refuse(protocol.ErrTypeBadAnswer, "question %s is answered twice", a.QuestionID)
		}
		if err := r.answerRefusal(open, a); err != nil {
			return err
		}
	}
	return nil
}

// answerRefusal says why one answer cannot be taken.
func (r *run) answerRefusal(open []pregel.OpenQuestion, given pregel.Answer) error {
	for _, q := range open {
		switch {
		case q.ID != given.QuestionID || r.inbox.hasAnswer(q.ID):
			continue
		case q.Event != "":
			return eventOnly(q)
		}
		return unfit(q.Question, given.Value) // also of one that was answered before, and asked again since its superstep was dropped
	}
	for _, a := range r.inbox.answered {
		if a.Question == given.QuestionID {
			return protocol.Refuse(protocol.ErrTypeAnswered, "question %s was already answered%s at %s", a.Question, byWhom(a.By),
				a.At.UTC().Format(time.RFC3339))
		}
	}
	return protocol.Refuse(protocol.ErrTypeUnknownQuestion, "question %s is not open on this thread", given.QuestionID)
}

// unfit refuses a value that is no answer to the question.
func unfit(q pregel.Question, value pregel.Value) error {
	err := graphadapter.CheckAnswer(q, value)
	if err == nil && q.Approval != nil { // people reply; what the task gets is made of that
		_, err = readReply(value)
	}
	if err != nil {
		return protocol.Refuse(protocol.ErrTypeBadAnswer, "%v", err)
	}
	return nil
}

// eventOnly refuses an answer of a person to a wait for an event.
func eventOnly(q pregel.OpenQuestion) error {
	return protocol.Refuse(protocol.ErrTypeBadAnswer, "%s of node %q waits for the event %q, not for a person: send that event", q.ID, q.Node, q.Event)
}

// gateOnly refuses an answer to an approval that comes with a run's input: it would pass no gate.
func gateOnly(q pregel.OpenQuestion) error {
	return protocol.Refuse(protocol.ErrTypeNotAllowed, "%s of node %q asks for an approval: answer it with resume, while the run waits", q.ID, q.Node)
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}
