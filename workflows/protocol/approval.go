package protocol

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
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

// PendingApproval is an action that waits for approval.
type PendingApproval = life.Pending
