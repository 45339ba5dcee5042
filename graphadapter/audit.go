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
type Audit struct {
	deaf
	Entries []approval.Entry
}

// Audited implements [Auditor].
func (a *Audit) Audited(e approval.Entry) { a.Entries = append(a.Entries, e) }

// deaf is a [Recorder] that keeps nothing.
type deaf struct{}

func (deaf) Began(int64, *pregel.Program, *pregel.Thread, Durability)                            {}
func (deaf) Continued(int64, *pregel.Program, *pregel.Thread, Durability, pregel.Status, string) {}
func (deaf) Happened(int64, pregel.Event)                                                        {}
func (deaf) Edited(int64, string, *pregel.Record)                                                {}
func (deaf) Ended(int64, pregel.Status, *pregel.Thread)                                          {}
