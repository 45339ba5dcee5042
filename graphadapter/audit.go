package graphadapter

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Auditor is a [Recorder] that is told of the audit of approvals too.
type Auditor interface {
	// Audited: an entry was added to the thread's chain.
	Audited(e approval.Entry)
}

// Audit collects the audit of approvals of one run, and nothing else: it is the [Recorder] of a replay.
type Audit struct{ Entries []approval.Entry }

// Audited implements [Auditor].
func (a *Audit) Audited(e approval.Entry) { a.Entries = append(a.Entries, e) }

// Began implements [Recorder].
func (a *Audit) Began(int64, *pregel.Program, *pregel.Thread, Durability) {}

// Continued implements [Recorder].
func (a *Audit) Continued(int64, *pregel.Program, *pregel.Thread, Durability, pregel.Status, string) {
}

// Happened implements [Recorder].
func (a *Audit) Happened(int64, pregel.Event) {}

// Edited implements [Recorder].
func (a *Audit) Edited(int64, string, *pregel.Record) {}

// Ended implements [Recorder].
func (a *Audit) Ended(int64, pregel.Status, *pregel.Thread) {}
