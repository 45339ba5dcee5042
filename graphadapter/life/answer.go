package life

import (
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Answer answers questions, all that it names or none; without any it passes the breakpoint at which the run stands. The
// reply is an [AnswerReply].
type Answer struct {
	// ID makes the request idempotent.
	ID string `json:"id"`
	// Call names one call of its sender: the outcome has the name of the call that was taken, so that a sender knows whether
	// a call before was.
	Call     string       `json:"call,omitempty"`
	Question string       `json:"question"`
	Value    pregel.Value `json:"value,omitempty"`
	By       string       `json:"by,omitempty"`
	// Answers answer several questions at once, all or none, instead of Question and Value.
	Answers []pregel.Answer `json:"answers,omitempty"`
	// Token proves who answers an approval; Tokens do, by question, with Answers. Whoever needs none leaves them out.
	Token  string            `json:"token,omitempty"`
	Tokens map[string]string `json:"tokens,omitempty"`
}

// AnswerReply is the outcome of an accepted answer.
type AnswerReply struct {
	Question string `json:"question"`
	Node     string `json:"node"`
	// Repeated says that this very request had been taken before, by the Call of another name.
	Repeated bool   `json:"repeated,omitempty"`
	Call     string `json:"call,omitempty"`
	// By is who it counts as answered by. Votes are the approvals of the question so far, of the Need that it takes, and
	// Decided says that this answer decided; for answers to approvals only. Audit is the end of the thread's audit then.
	By      string          `json:"by,omitempty"`
	Votes   int             `json:"votes,omitempty"`
	Need    int             `json:"need,omitempty"`
	Decided bool            `json:"decided,omitempty"`
	Audit   *approval.Chain `json:"audit,omitempty"`
}

func (a Answer) head() head { return head{nameAnswer, a.ID, a.By, a.Token} }

// All are the request's answers, none for one that only passes a breakpoint.
func (a Answer) All() []pregel.Answer {
	out := make([]pregel.Answer, 0, len(a.Answers)+1)
	for _, one := range a.Answers {
		out = append(out, pregel.Answer{QuestionID: one.QuestionID, Value: one.Value, By: a.By})
	}
	if a.Question != "" {
		out = append(out, pregel.Answer{QuestionID: a.Question, Value: a.Value, By: a.By})
	}
	return out
}

// tokenFor is the token that goes with the answer to a question.
func (a Answer) tokenFor(question string) string {
	if token, ok := a.Tokens[question]; ok {
		return token
	}
	if question == a.Question {
		return a.Token
	}
	return ""
}

func (a Answer) bounds() error {
	if err := BoundAnswers(a.ID, a.By, a.All()); err != nil {
		return err
	}
	if len(a.Call) > MaxNameBytes {
		return refuse(BadAnswer, "the name of a call has at most %d bytes", MaxNameBytes)
	}
	longest := len(a.Token)
	for _, one := range a.Answers {
		longest = max(longest, len(a.tokenFor(one.QuestionID)))
	}
	if longest > MaxTokenBytes {
		return refuse(BadAnswer, "a token has at most %d bytes", MaxTokenBytes)
	}
	return nil
}

// BoundAnswers says what is too large about answers, however they are given.
func BoundAnswers(id, by string, answers []pregel.Answer) error {
	size := 0
	for _, a := range answers {
		size += len(a.Value)
		if len(a.QuestionID) > MaxNameBytes || len(a.By) > MaxNameBytes {
			size += MaxAnswerBytes
		}
	}
	if size > MaxAnswerBytes || len(by) > MaxNameBytes || len(id) > MaxNameBytes || len(answers) > maxAnswered {
		return refuse(BadAnswer, "an answer has at most %d bytes, and names at most %d", MaxAnswerBytes, MaxNameBytes)
	}
	return nil
}

func (a Answer) control(*Run) approval.Control {
	return approval.Control{Op: approval.OpResume, On: a.Question}
}

func (a Answer) refusal(r *Run) error {
	answers, stand := a.All(), r.of.Stand()
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
	open := r.of.Asks()
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

// AnswersTo are the answers in a run's input to questions that are open; others answer nothing.
func AnswersTo(open []pregel.OpenQuestion, resume *pregel.Resume) []pregel.Answer {
	if resume == nil {
		return nil
	}
	given := make([]pregel.Answer, 0, len(resume.Answers)+len(resume.ByID))
	for i, q := range open {
		if value, ok := resume.ByID[q.ID]; ok {
			given = append(given, pregel.Answer{QuestionID: q.ID, Value: value, By: resume.By})
		}
		for _, a := range resume.Answers {
			if a.QuestionID == q.ID {
				given = append(given, a)
			}
		}
		if i == 0 && resume.Scalar != nil {
			given = append(given, pregel.Answer{QuestionID: q.ID, Value: resume.Scalar, By: resume.By})
		}
	}
	return given
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

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// unproven refuses, before it is stored, an answer that takes a token for control and has none. Approvals take tokens of their
// own, and are not answered together with what asks for none.
func (r *Run) unproven(a Answer, governed bool) error {
	gated := len(r.gated(a))
	switch {
	case !governed:
	case gated == 0 && a.Token == "":
		return Denied(approval.OpResume, Unsigned(approval.OpResume))
	case gated > 0 && gated < len(a.All()):
		return refuse(BadAnswer, "who answers proves it, with a token for one question: answer what asks for no approval apart")
	}
	return nil
}

func (a Answer) take(r *Run, by Actor, now time.Time) any {
	a.By = by.Name()
	r.auditAnswers(by, a.All(), now)
	reply := AnswerReply{Question: a.Question, Node: r.accept(a.ID, a.All(), now), Call: a.Call}
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

func (a Answer) turnedDown() Refused { return Refused{Question: named(a.Question), By: named(a.By)} }

// accept notes answers as given, and returns the node that asked the last of them.
func (r *Run) accept(request string, answers []pregel.Answer, now time.Time) string {
	node := ""
	r.look = true
	open := r.of.Asks()
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
	open := r.of.Asks()
	for _, a := range answers {
		for _, q := range open {
			if q.ID == a.QuestionID && q.Approval == nil && q.Event == "" {
				r.Note(now, EntryAnswered(by, q.Question, a.Value))
			}
		}
	}
}

// repeated finds a request whose answers were taken before under the same id, perhaps by an earlier run of the thread.
func (s *State) repeated(a Answer) (Answered, bool) {
	if a.ID == "" {
		return Answered{}, false
	}
	for _, given := range a.All() {
		for _, done := range s.Answered {
			if done.RequestID == a.ID && done.Question == given.QuestionID {
				return done, true
			}
		}
	}
	return Answered{}, false
}

// TakenAnswer is the outcome of a request with answers that was taken before, perhaps by an earlier run of the thread.
func (s *State) TakenAnswer(id string) (AnswerReply, bool) {
	if before, ok := s.find(nameAnswer, id); ok {
		reply := read[AnswerReply](before)
		reply.Repeated = true
		return reply, true
	}
	at := slices.IndexFunc(s.Answered, func(a Answered) bool { return id != "" && a.RequestID == id })
	if at < 0 {
		return AnswerReply{}, false
	}
	return AnswerReply{Question: s.Answered[at].Question, Node: s.Answered[at].Node, Repeated: true}, true
}

// Reopen forgets the answers to questions that an earlier state of the thread has open.
func (s *State) Reopen(open []pregel.OpenQuestion) {
	s.Answered = slices.DeleteFunc(slices.Clone(s.Answered), func(a Answered) bool {
		return slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == a.Question })
	})
}

// HasAnswer reports whether the answer to a question was taken, and the engine was not given it yet.
func (s *State) HasAnswer(question string) bool {
	return slices.ContainsFunc(s.Given, func(a pregel.Answer) bool { return a.QuestionID == question })
}

// Waiting reports whether there is something for the engine to go on with.
func (s *State) Waiting() bool { return len(s.Given) > 0 || s.Passed || s.Retry }

// GoesOn reports whether the engine is to go on with that now: nobody holds the run up. A run that failed does not go on with
// an answer alone.
func (r *Run) GoesOn() bool {
	return r.State.Paused == nil && (r.State.Retry || r.Waiting() && !r.of.Stand().Failed)
}

// GiveAnswers hands over the answers that the engine is to be given. A bare retry, or passing a breakpoint, has none.
func (r *Run) GiveAnswers() []pregel.Answer {
	given := r.State.Given
	r.State.Given, r.Passed, r.State.Retry = nil, false, false
	return given
}

// Unanswered are the open questions without those whose answer was taken already.
func (r *Run) Unanswered() []pregel.OpenQuestion {
	return slices.DeleteFunc(slices.Clone(r.of.Asks()), func(q pregel.OpenQuestion) bool { return r.HasAnswer(q.ID) })
}

// Questions are the open questions for people.
func (r *Run) Questions() []pregel.OpenQuestion {
	return slices.DeleteFunc(r.Unanswered(), func(q pregel.OpenQuestion) bool { return q.Event != "" })
}
