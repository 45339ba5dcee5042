package graphadapter

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Recorder is told of everything that happens to a thread, in order: by whoever drives the thread, or by a replay of a
// run's history. at is the position in the run's history, 0 in memory; positions never fall.
type Recorder interface {
	// Began: the engine goes on with the thread, from its head, which holds what earlier invocations found out.
	Began(at int64, p *pregel.Program, t *pregel.Thread, d Durability)
	// Continued: a run goes on where an earlier one, which was continued as a new one, has left the thread; that one has
	// told the rest. The invocation stands at s: with pregel.StatusRunning it is under way, and began at the checkpoint
	// of the id base.
	Continued(at int64, p *pregel.Program, t *pregel.Thread, d Durability, s pregel.Status, base string)
	// Happened: the engine reported an event.
	Happened(at int64, e pregel.Event)
	// Edited: an update from outside made a record, of the root graph ("") or of the subgraph with that namespace.
	Edited(at int64, namespace string, r *pregel.Record)
	// Ended: the invocation stands still: finished, waiting, stopped or failed.
	// t is the thread as it stands then: the one that it went on with, or the newest when it made no checkpoint (see
	// pregel.Newer).
	Ended(at int64, s pregel.Status, t *pregel.Thread)
}

// SegmentRecorder is a [Recorder] that is told of segments too.
type SegmentRecorder interface {
	// Handed: the run handed itself to the activity of that id, in a mode in which that stores what it does. What is stored
	// can be delivered to a loop that is restored from suspended, with [Redeliver]: it brings about what the run will tell
	// once the activity has ended, but for the end of the superstep that is stored last. A run that is asked to stop ends
	// there.
	Handed(activityID string, p *pregel.Program, suspended pregel.Value)
}

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

func (deaf) Began(int64, *pregel.Program, *pregel.Thread, Durability) {}

func (deaf) Continued(int64, *pregel.Program, *pregel.Thread, Durability, pregel.Status, string) {}

func (deaf) Happened(int64, pregel.Event) {}

func (deaf) Edited(int64, string, *pregel.Record) {}

func (deaf) Ended(int64, pregel.Status, *pregel.Thread) {}
