package protocol

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
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
type PendingApproval = life.Pending

// WaitingReply is an answer by signal that waits to be verified; Count says how often the same one came.
type WaitingReply struct {
	Request ResumeRequest `json:"request"`
	Count   int           `json:"count"`
}
