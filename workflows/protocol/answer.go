package protocol

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// ResumeRequest answers a question, as the argument of the update or the signal.
type ResumeRequest struct {
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

// ResumeReply is the outcome of an accepted answer.
type ResumeReply struct {
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

// All are the request's answers, none for a bare resume.
func (req *ResumeRequest) All() []pregel.Answer {
	out := make([]pregel.Answer, 0, len(req.Answers)+1)
	for _, a := range req.Answers {
		out = append(out, pregel.Answer{QuestionID: a.QuestionID, Value: a.Value, By: req.By})
	}
	if req.Question != "" {
		out = append(out, pregel.Answer{QuestionID: req.Question, Value: req.Value, By: req.By})
	}
	return out
}

// TokenFor is the token that goes with the answer to a question.
func (req *ResumeRequest) TokenFor(question string) string {
	if token, ok := req.Tokens[question]; ok {
		return token
	}
	if question == req.Question {
		return req.Token
	}
	return ""
}

// TokenBytes are those of the longest token.
func (req *ResumeRequest) TokenBytes() (longest int) {
	longest = len(req.Token)
	for _, a := range req.Answers {
		longest = max(longest, len(req.TokenFor(a.QuestionID)))
	}
	return longest
}

// AnswerRefusal says why a reply to an approval does not count.
type AnswerRefusal struct {
	Question string `json:"question"`
	approval.Ruling
}

// ViewRequest is the argument of SignalViewed. Nobody checks who By is.
type ViewRequest struct {
	Question string `json:"question"`
	By       string `json:"by"`
}
