package protocol

import (
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/trail"
)

// AuditReply is the answer to QueryAudit: the newest entries of this run, oldest first, and the end of the thread's chain.
type AuditReply struct {
	Entries []approval.Entry `json:"entries"`
	Chain   approval.Chain   `json:"chain"`
	// Signed is the end of the chain as an approval.Head that the worker signed, "" when it has no key for that. Problem says
	// why it could not be signed.
	Signed  string `json:"signed,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ApprovalState is what a run knows of the thread's approvals and of its audit. Whatever continues the thread is given it whole: another
// execution of the run, or the thread's next run.
type ApprovalState struct {
	trail.State
	Pending []PendingApproval `json:"pending,omitempty"`
	// Used are the ids of the tokens that counted, the latest of them: none counts twice, whatever is asked again.
	Used []string `json:"used,omitempty"`
}

// PendingApproval is an action that waits for approval.
type PendingApproval struct {
	Question string `json:"question"`
	Node     string `json:"node"`
	// Digest is that of the action that is asked about, and ParamsHash its parameters'.
	Digest     string `json:"digest"`
	ParamsHash string `json:"params_hash"`
	// Asked are the people and groups who are asked now, none for whoever the policy allows.
	Asked []string `json:"asked,omitempty"`
	// Votes are the approvals that were given, of the Need that it takes.
	Votes []approval.Vote `json:"votes,omitempty"`
	Need  int             `json:"need"`
	// Warn is when people are to be warned, and Due when the time to answer is over; zero for never, or not any more.
	Warn time.Time `json:"warn,omitzero"`
	Due  time.Time `json:"due,omitzero"`
	// Missed is when the time to answer was over, of an approval that has paused its run and stays open.
	Missed time.Time `json:"missed,omitzero"`
	// Escalated says that the time was over once, and that others are asked since.
	Escalated bool `json:"escalated,omitempty"`
	// Viewers are who says to have looked at it, the first of them.
	Viewers []string `json:"viewers,omitempty"`
	// Claimed names who is answering at this moment, as far as that was said; Busy that somebody is. Both are for State only.
	Claimed string `json:"claimed,omitempty"`
	Busy    bool   `json:"busy,omitempty"`
}

// WaitingReply is an answer by signal that waits to be verified; Count says how often the same one came.
type WaitingReply struct {
	Request ResumeRequest `json:"request"`
	Count   int           `json:"count"`
}
