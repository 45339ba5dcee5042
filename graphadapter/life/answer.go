package life

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Answer answers questions, all that it names or none; with a value alone the one that is open. Without any it passes the breakpoint
// at which the run stands. The reply is an [AnswerReply].
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
	// Token proves who answers: an approval, or under rules for control what asks for none, several questions together too. Tokens
	// prove it for the approvals among Answers, by question.
	Token  string            `json:"token,omitempty"`
	Tokens map[string]string `json:"tokens,omitempty"`
	// Trace is the span of who answers, as package tracing carries it; "" for none. Nothing follows from it.
	Trace string `json:"trace,omitempty"`
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
	// Paused says that nothing goes on with the answer before somebody unpauses the run.
	Paused bool `json:"paused,omitempty"`
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

func replyBytes(a Answer) int {
	size := len(a.ID) + len(a.By)
	for _, one := range a.All() {
		size += len(one.QuestionID) + len(one.Value) + len(a.tokenFor(one.QuestionID))
	}
	return size
}

// sameReply is equal for answers that are the same but for their ids. Who says to have given them may make them count or
// not.
func sameReply(a Answer) string {
	key := a.By + "\x00"
	for _, one := range a.All() {
		key += one.QuestionID + "\x00" + a.tokenFor(one.QuestionID) + "\x00" + string(one.Value) + "\x00"
	}
	return key
}
