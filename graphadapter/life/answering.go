package life

import (
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

func (a Answer) control(*Run) approval.Control {
	return approval.Control{Op: approval.OpResume, On: a.Question}
}

func (a Answer) refusal(r *Run) error {
	answers, stand := a.All(), r.stand()
	if _, again := r.repeated(a); again {
		return nil
	}
	switch {
	case stand.changing():
		return refuse(Busy, "the thread's state is being changed: look what it asks then")
	case len(answers) == 0 && r.State.Paused != nil:
		return refuse(Busy, "%s", r.PausedBy())
	case len(answers) == 0 && stand.Stopped && !r.Waiting():
		return nil
	case len(answers) == 0:
		return refuse(UnknownQuestion, "the run does not stand at a breakpoint: name the question that you answer")
	case r.Drops():
		return refuse(Busy, "the run is being cancelled, and what it asks is forgotten with its superstep")
	}
	open := r.asks()
	for i, one := range answers {
		if slices.ContainsFunc(answers[:i], func(b pregel.Answer) bool { return b.QuestionID == one.QuestionID }) {
			return refuse(BadAnswer, "question %s is answered twice", one.QuestionID)
		}
		if err := r.answerRefusal(open, one); err != nil {
			return err
		}
	}
	return nil
}

// answerRefusal says why one answer cannot be taken.
func (r *Run) answerRefusal(open []pregel.OpenQuestion, given pregel.Answer) error {
	for _, q := range open {
		switch {
		case q.ID != given.QuestionID || r.HasAnswer(q.ID):
			continue
		case q.Event != "":
			return eventOnly(q)
		}
		return unfit(q.Question, given.Value) // also of one that was answered before, and asked again since its superstep was dropped
	}
	for _, a := range r.State.Answered {
		if a.Question == given.QuestionID {
			return refuse(AlreadyAnswered, "question %s was already answered%s at %s", a.Question, byWhom(a.By),
				a.At.UTC().Format(time.RFC3339))
		}
	}
	return refuse(UnknownQuestion, "question %s is not open on this thread", given.QuestionID)
}

// InputRefusal says why an answer that comes with a run's input is no answer to the question; nil means it is.
func InputRefusal(q pregel.OpenQuestion, value pregel.Value) error {
	switch {
	case q.Event != "":
		return eventOnly(q)
	case q.Approval != nil: // it would pass no gate
		return refuse(NotAllowed, "%s of node %q asks for an approval: answer it with resume, while the run waits", q.ID, q.Node)
	}
	return unfit(q.Question, value)
}

// unfit refuses a value that is no answer to the question.
func unfit(q pregel.Question, value pregel.Value) error {
	err := graphadapter.CheckAnswer(q, value)
	if err == nil && q.Approval != nil { // people reply; what the task gets is made of that
		_, err = approval.ParseReply(json.RawMessage(value))
	}
	if err != nil {
		return refuse(BadAnswer, "%v", err)
	}
	return nil
}

// eventOnly refuses an answer of a person to a wait for an event.
func eventOnly(q pregel.OpenQuestion) error {
	return refuse(BadAnswer, "%s of node %q waits for the event %q, not for a person: send that event", q.ID, q.Node, q.Event)
}

func (a Answer) take(r *Run, by Actor, now time.Time) any {
	a.By = by.Name()
	r.auditAnswers(by, a.All(), now)
	reply := AnswerReply{Question: a.Question, Node: r.accept(a.ID, a.All(), now), Call: a.Call, Paused: r.State.Paused != nil}
	if r.State.Given = append(slices.Clip(r.State.Given), a.All()...); len(a.All()) == 0 {
		r.Passed = true
	}
	return reply
}

func (a Answer) again(_ *Run, before Taken) any {
	reply := read[AnswerReply](before)
	reply.Repeated = isRepeat(a.Call, reply.Call)
	return reply
}

// accept notes answers as given, and returns the node that asked the last of them.
func (r *Run) accept(request string, answers []pregel.Answer, now time.Time) string {
	node := ""
	r.look = true
	open := r.asks()
	for _, a := range answers {
		for _, q := range open {
			if q.ID == a.QuestionID {
				node = q.Node
			}
		}
		r.note(Answered{Question: a.QuestionID, Node: node, RequestID: request, By: a.By, At: now})
	}
	return node
}

// Accept notes answers that come with a run's input as given. Forget takes that back, where the engine refuses the input: the
// questions are open then, and may be answered again.
func (r *Run) Accept(request string, answers []pregel.Answer, now time.Time) (forget func()) {
	before := r.State.Answered
	r.accept(request, answers, now)
	return func() { r.State.Answered = before }
}

// auditAnswers notes who answers questions that ask for no approval. It is called before the answers are taken.
func (r *Run) auditAnswers(by Actor, answers []pregel.Answer, now time.Time) {
	open := r.asks()
	for _, a := range answers {
		for _, q := range open {
			if q.ID == a.QuestionID && q.Approval == nil && q.Event == "" {
				r.Note(now, EntryAnswered(by, q.Question, a.Value))
			}
		}
	}
}

// gated are the request's answers to approvals that are open.
func (r *Run) gated(a Answer) []pregel.Answer {
	var out []pregel.Answer
	open := r.Unanswered()
	for _, one := range a.All() {
		if slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == one.QuestionID && q.Approval != nil }) {
			out = append(out, one)
		}
	}
	return out
}
