package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Bounds on what anyone can send to a run. Each junk signal costs four events, and the validator is the shield of
// updates, so both are checked before anything else.
const (
	maxAnswerBytes = 256 << 10
	maxNameBytes   = 256
	maxAnswered    = 1000
	maxRefused     = 100
)

// inbox notes what arrived for the main coroutine.
type inbox struct {
	invoke   *InvokeRequest
	updates  []ResumeRequest
	signals  []ResumeRequest
	answered []Answered
	refused  []Refused
}

func (b *inbox) waiting() bool { return b.invoke != nil || len(b.updates)+len(b.signals) > 0 }

// hasAnswers reports whether answers arrived, as opposed to new input or a bare resume.
func (b *inbox) hasAnswers() bool {
	for _, req := range append(b.updates[:len(b.updates):len(b.updates)], b.signals...) {
		if len(req.answers()) > 0 {
			return true
		}
	}
	return false
}

// take empties the inbox into an engine input: updates first, then signals, each in their order. A bare resume only
// passes a breakpoint.
func (b *inbox) take() pregel.Input {
	in := pregel.Input{}
	if b.invoke != nil {
		in = b.invoke.Input
		b.invoke = nil
	}
	for _, req := range append(b.updates, b.signals...) {
		for _, a := range req.answers() {
			if in.Resume == nil {
				in.Resume = &pregel.Resume{}
			}
			in.Resume.Answers = append(in.Resume.Answers, a)
		}
	}
	b.updates, b.signals = nil, nil
	return in
}

// answers are the request's answers, none for a bare resume.
func (req *ResumeRequest) answers() []pregel.Answer {
	out := make([]pregel.Answer, 0, len(req.Answers)+1)
	for _, a := range req.Answers {
		out = append(out, pregel.Answer{QuestionID: a.QuestionID, Value: a.Value, By: req.By})
	}
	if req.Question != "" {
		out = append(out, pregel.Answer{QuestionID: req.Question, Value: req.Value, By: req.By})
	}
	return out
}

// note keeps who answered what, the latest of them.
func (b *inbox) note(a Answered) {
	b.answered = append(b.answered, a)
	if len(b.answered) > maxAnswered {
		b.answered = append(b.answered[:0:0], b.answered[len(b.answered)-maxAnswered:]...)
	}
}

func (b *inbox) refuse(r Refused) {
	b.refused = append(b.refused, r)
	if len(b.refused) > maxRefused {
		b.refused = append(b.refused[:0:0], b.refused[len(b.refused)-maxRefused:]...)
	}
}

// handle registers the run's handlers. It is called before anything blocks, so that nothing that arrived is missed.
func (r *run) handle(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateResume, r.onResume, workflow.UpdateHandlerOptions{
		Validator:   func(_ workflow.Context, req ResumeRequest) error { return r.refusal(req) },
		Description: "Answers a question; without a question, passes a breakpoint.",
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateInvoke, r.onInvoke, workflow.UpdateHandlerOptions{
		Validator:   func(_ workflow.Context, req InvokeRequest) error { return r.invokeRefusal() },
		Description: "Gives a waiting run new input; open questions are abandoned.",
	})
	if err != nil {
		return err
	}
	workflow.Go(ctx, r.receiveSignals)
	return r.handleQueries(ctx)
}

// onResume takes in an answer that the validator let through. It is durable now: the run goes on with it when its
// superstep waits.
func (r *run) onResume(ctx workflow.Context, req ResumeRequest) (ResumeReply, error) {
	if done, ok := r.repeated(req); ok {
		return ResumeReply{Question: done.Question, Node: done.Node, Repeated: true}, nil
	}
	node := r.accept(ctx, req)
	r.inbox.updates = append(r.inbox.updates, req)
	return ResumeReply{Question: req.Question, Node: node}, nil
}

// onInvoke takes in new input for a run that waits.
func (r *run) onInvoke(_ workflow.Context, req InvokeRequest) error {
	r.inbox.invoke = &req
	return nil
}

// invokeRefusal says why a run cannot take new input now.
func (r *run) invokeRefusal() error {
	if (r.status == StatusWaiting || r.status == StatusStopped) && !r.inbox.waiting() {
		return nil
	}
	return refuse(ErrTypeBusy, "the run is under way: wait until it waits or ends, or cancel it")
}

// receiveSignals holds answers by signal to the same checks; since a signal gets no reply, a refusal is kept to be seen.
func (r *run) receiveSignals(ctx workflow.Context) {
	channel := workflow.GetSignalChannelWithOptions(ctx, SignalResume,
		workflow.SignalChannelOptions{Description: "Answers a question without waiting for the reply."})
	for {
		var req ResumeRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		if _, ok := r.repeated(req); ok {
			continue
		}
		if err := r.refusal(req); err != nil {
			r.inbox.refuse(Refused{Question: clip(req.Question), By: clip(req.By), Reason: err.Error(), At: workflow.Now(ctx)})
			workflow.GetLogger(ctx).Warn("answer by signal refused", "question", clip(req.Question), "reason", err.Error())
			continue
		}
		r.accept(ctx, req)
		r.inbox.signals = append(r.inbox.signals, req)
	}
}

func clip(s string) string {
	if len(s) > maxNameBytes {
		return s[:maxNameBytes]
	}
	return s
}

// accept notes a request's answers as given, and returns the node that asked the last of them.
func (r *run) accept(ctx workflow.Context, req ResumeRequest) string {
	node := ""
	for _, a := range req.answers() {
		for _, q := range r.program.OpenQuestions(r.thread) {
			if q.ID == a.QuestionID {
				node = q.Node
			}
		}
		r.inbox.note(Answered{Question: a.QuestionID, Node: node, RequestID: req.ID, By: req.By, At: workflow.Now(ctx)})
	}
	return node
}

// repeated finds a request that was taken before under the same id: it gets the same outcome again.
func (r *run) repeated(req ResumeRequest) (Answered, bool) {
	if req.ID == "" {
		return Answered{}, false
	}
	for _, given := range req.answers() {
		for _, a := range r.inbox.answered {
			if a.RequestID == req.ID && a.Question == given.QuestionID {
				return a, true
			}
		}
	}
	return Answered{}, false
}

// refusal says why a request cannot be taken; nil means it can. It changes nothing.
func (r *run) refusal(req ResumeRequest) error {
	answers := req.answers()
	if err := bounded(req, answers); err != nil {
		return err
	}
	if _, ok := r.repeated(req); ok {
		return nil
	}
	if len(answers) == 0 {
		if r.status == StatusStopped && !r.inbox.waiting() {
			return nil
		}
		return refuse(ErrTypeUnknownQuestion, "the run does not stand at a breakpoint: name the question that you answer")
	}
	open := r.program.OpenQuestions(r.thread)
	for _, a := range answers {
		if err := r.answerRefusal(open, a); err != nil {
			return err
		}
	}
	return nil
}

func bounded(req ResumeRequest, answers []pregel.Answer) error {
	size := 0
	for _, a := range answers {
		size += len(a.Value)
		if len(a.QuestionID) > maxNameBytes {
			size += maxAnswerBytes
		}
	}
	if size > maxAnswerBytes || len(req.By) > maxNameBytes || len(req.ID) > maxNameBytes || len(answers) > maxAnswered {
		return refuse(ErrTypeBadAnswer, "an answer has at most %d bytes, and names at most %d", maxAnswerBytes, maxNameBytes)
	}
	return nil
}

// answerRefusal says why one answer cannot be taken.
func (r *run) answerRefusal(open []pregel.OpenQuestion, given pregel.Answer) error {
	for _, a := range r.inbox.answered {
		if a.Question == given.QuestionID {
			return refuse(ErrTypeAnswered, "question %s was already answered%s at %s", a.Question, byWhom(a.By),
				a.At.UTC().Format(time.RFC3339))
		}
	}
	for _, q := range open {
		if q.ID == given.QuestionID {
			if err := graphadapter.CheckAnswer(q.Question, given.Value); err != nil {
				return refuse(ErrTypeBadAnswer, "%v", err)
			}
			return nil
		}
	}
	return refuse(ErrTypeUnknownQuestion, "question %s is not open on this thread", given.QuestionID)
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// refuse builds the typed error with which a message is turned away.
func refuse(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}
