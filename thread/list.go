package thread

import (
	"time"

	"superstep.dev/approval"
)

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
