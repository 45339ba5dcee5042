package thread

import (
	"encoding/json"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Question is what a run asks a person or a program.
type Question struct {
	ID string `json:"id"`
	// Node asked it, at superstep Step.
	Node string `json:"node"`
	Step int    `json:"step"`
	// Value is what is asked, as the node gave it; Schema is the JSON schema of the answer, nil for any JSON.
	Value  json.RawMessage `json:"value"`
	Schema json.RawMessage `json:"schema,omitempty"`
	// Due is when the time to answer is over, zero for never. Default is the answer that counts then; nil when the node is told that
	// nobody has answered. An approval has a Due of its own.
	Due     time.Time       `json:"due,omitzero"`
	Default json.RawMessage `json:"default,omitempty"`
	// Approval is the action that it asks to approve, nil for any other question. The answer is an [approval.Reply].
	Approval *ApprovalView `json:"approval,omitempty"`
}

// Text is the question as people read it: a string without its quotes, the text of an object that carries one (as text,
// question, message or ask), any other value as compact JSON.
func (q Question) Text() string { return graphadapter.QuestionText(pregel.Value(q.Value)) }

// String is the question for logs: "q-41c9 of approval: Refund 250.00?".
func (q Question) String() string { return q.ID + " of " + q.Node + ": " + q.Text() }

// ApprovalView is an action that waits for approval, as people see it: with its secrets hidden, in Before too.
type ApprovalView struct {
	approval.Action
	// Digest is what a token for the question is bound to, beside ParamsHash; see [approval.Claims].
	Digest string `json:"digest"`
	// Changes are what is different from the parameters that were asked about before, nil for the first question.
	Changes []approval.Change `json:"changes,omitempty"`
	// Asked are the people and groups who are asked now, none for whoever the policy allows.
	Asked []string `json:"asked,omitempty"`
	// Votes are the approvals that were given, of the Need that it takes.
	Votes []approval.Vote `json:"votes,omitempty"`
	Need  int             `json:"need"`
	// Due is when the time to answer is over, or was; zero for never.
	Due time.Time `json:"due,omitzero"`
	// Escalated says that it was over once, and that others are asked since.
	Escalated bool `json:"escalated,omitempty"`
	// Claimed names who is answering at this moment, as far as they said.
	Claimed string `json:"claimed,omitempty"`
}

// QuestionView is one question of a thread, with what else is known of it.
type QuestionView struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	Question
	// Given is the answer that was given; nil while the question is open.
	Given *GivenView `json:"given,omitempty"`
	// Others are the other questions that the thread has open. Where all of them are more than one reply takes, they have
	// one line of their text as Value, and neither schema nor approval.
	Others []Question `json:"others,omitempty"`
	// Paused says who paused the run, nil when nobody did.
	Paused *PauseView `json:"paused,omitempty"`
}

// GivenView says who answered a question, and when.
type GivenView struct {
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// ResumeRequest answers one question of a thread, or with Answers several.
type ResumeRequest struct {
	Thread string
	// Question is the question's id or an unambiguous start of it; "" while exactly one question is open.
	Question string
	Value    json.RawMessage
	// Answers answer several questions at once, all or none, by the questions' ids or unambiguous starts of them; Question and
	// Value are empty then. At most 256 KiB together.
	Answers map[string]json.RawMessage
	// By names who answers; "" for whoever the token names. An approval whose token names somebody else is refused.
	By string
	// Token proves who answers: an approval, with the claims of its question; or, where the workers' rules have a section on
	// control, anything else, with those of [approval.OpResume]: on the question, or on "" with Answers.
	Token string
	// Tokens prove who answers the approvals among Answers, by the same keys.
	Tokens map[string]string
	// ID makes the request idempotent: the thread takes the same ID once, and says so of the next (ResumeReply.Repeated), also
	// when its run is over. "" makes one. At most 200 bytes.
	ID string
	// Signal sends the answer as a signal: durable even while no worker runs, but with no reply whether it was taken.
	Signal bool
}

// ResumeReply says what became of an answer.
type ResumeReply struct {
	Thread   string `json:"thread"`
	Question string `json:"question"`
	Node     string `json:"node"`
	// Questions are those that were answered, when the request had Answers.
	Questions []string `json:"questions,omitempty"`
	// Accepted is false, and Repeated true, when this very request had been taken before.
	Accepted bool `json:"accepted"`
	Repeated bool `json:"repeated,omitempty"`
	// By is whose approval, rejection or edit it counts as; "" for other answers.
	By string `json:"by,omitempty"`
	// Votes are the approvals of the question so far, of the Need that it takes; 0 for other answers.
	Votes int `json:"votes,omitempty"`
	Need  int `json:"need,omitempty"`
	// Paused says that nothing goes on with the answer before somebody unpauses the run.
	Paused bool `json:"paused,omitempty"`
}

// ListQuery selects threads.
type ListQuery struct {
	// Graph and Status select; "" means any.
	Graph  string
	Status Status
	// Limit is the most threads to return; 0 means 100.
	Limit int
}

// InboxQuery selects open questions.
type InboxQuery struct {
	// Approver and Group select the questions that ask this person, or this group, by name; with both, either. A question
	// that names nobody is for whoever the policy allows, and is in nobody's selection.
	Approver, Group string
	// Graph selects the questions of one graph's threads.
	Graph string
	// Overdue selects those whose deadline is over.
	Overdue bool
	// Limit is the most threads of a page, 0 for 100, at most 1,000.
	Limit int
	// Page is the Next of the page before, "" for the first one.
	Page string
}

// InboxPage is one page of open questions.
type InboxPage struct {
	// Questions are those of the page's threads, the most pressing first: by deadline, then by risk. The threads are those
	// that started last.
	Questions []InboxItem `json:"questions"`
	// Next continues behind this page; "" when it is the last.
	Next string `json:"next,omitempty"`
}

// InboxItem is one open question as the server's index has it.
type InboxItem struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	// Job is the job whose leader or expert asks, "" for none.
	Job string `json:"job,omitempty"`
	// Question is "" when only Open is known: how many questions the thread asks, beyond those that are listed.
	Question string `json:"question,omitempty"`
	Open     int    `json:"open,omitempty"`
	Node     string `json:"node,omitempty"`
	// Asks is the question in one line of at most 300 bytes.
	Asks string `json:"asks,omitempty"`
	// What follows is of approvals only. Votes are the approvals so far, of the Need that it takes.
	Risk      approval.Risk    `json:"risk,omitempty"`
	Due       time.Time        `json:"due,omitzero"`
	Silence   approval.Silence `json:"silence,omitempty"`
	Approvers []string         `json:"approvers,omitempty"`
	Votes     int              `json:"votes,omitempty"`
	Need      int              `json:"need,omitempty"`
	// Paused says who paused the thread's run, nil when nobody did: its questions can be answered all the same.
	Paused *PauseView `json:"paused,omitempty"`
}

// What a question is about: an approval, what became of a write or of a lost worker's task, or anything else.
const (
	AboutQuestion = "question"
	AboutApproval = "approval"
	AboutDoubt    = "doubt"
)

// OpenQuestions are the questions of one graph, or of a job's leader, that wait for people.
type OpenQuestions struct {
	Graph string `json:"graph"`
	About string `json:"about"`
	Open  int    `json:"open"`
	// Oldest is when the oldest of them was asked, zero when that is not known.
	Oldest time.Time `json:"oldest,omitzero"`
}
