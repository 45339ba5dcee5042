package protocol

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
)

// ResumeRequest answers a question, as the argument of the update or the signal.
type ResumeRequest = life.Answer

// ResumeReply is the outcome of an accepted answer.
type ResumeReply = life.AnswerReply

// AnswerRefusal says why a reply to an approval does not count.
type AnswerRefusal = life.Ruling

// ViewRequest is the argument of SignalViewed. Nobody checks who By is.
type ViewRequest = life.View

// AuditReply is the answer to QueryAudit: the newest entries of this run, oldest first, and the end of the thread's chain.
type AuditReply struct {
	Entries []approval.Entry `json:"entries"`
	Chain   approval.Chain   `json:"chain"`
	// Signed is the end of the chain as an approval.Head that the worker signed, "" when it has no key for that. Problem says
	// why it could not be signed.
	Signed  string `json:"signed,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// PendingApproval is an action that waits for approval.
type PendingApproval = life.Pending
