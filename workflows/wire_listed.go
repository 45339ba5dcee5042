package workflows

import (
	"time"

	"superstep.dev/approval"
)

// MemoQuestions is the memo field that holds a run's [QuestionsNote].
const MemoQuestions = "superstep.questions"

// The custom search attributes of the questions that a run has open. A server that lacks one of them is served without all
// three, and without the memo.
const (
	// AttributeApprovers are the people, and as "group:NAME" the groups, who are asked.
	AttributeApprovers = "SuperstepApprovers"
	// AttributeDue is the first deadline, and AttributeRisk the highest risk.
	AttributeDue  = "SuperstepDue"
	AttributeRisk = "SuperstepRisk"
)

// AnyApprover is in AttributeApprovers of a run that asks more people than there is room for.
const AnyApprover = "*"

// QuestionsNote is what lists show of a run's open questions. It goes through the data converter, so a codec protects it.
type QuestionsNote struct {
	// Questions are the first 20, in task order, and More is how many others there are.
	Questions []QuestionNote `json:"questions"`
	More      int            `json:"more,omitempty"`
}

// QuestionNote is one open question. What only approvals have is zero in others.
type QuestionNote struct {
	ID   string `json:"id"`
	Node string `json:"node"`
	// Asks is the question in one line of at most 300 bytes.
	Asks      string           `json:"asks"`
	Risk      approval.Risk    `json:"risk,omitempty"`
	Due       time.Time        `json:"due,omitzero"`
	Silence   approval.Silence `json:"silence,omitempty"`
	Approvers []string         `json:"approvers,omitempty"`
	// Votes are the approvals so far, of the Need that it takes.
	Votes int `json:"votes,omitempty"`
	Need  int `json:"need,omitempty"`
}
