package life

import (
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Note adds an entry to the thread's audit, of something that a host has done.
func (r *Run) Note(now time.Time, entries ...approval.Entry) {
	for _, e := range entries {
		r.trail.Note(now, e)
	}
}

// Happened notes what a task's ledger tells: what became of approvals, and of writes that were not made by one call.
func (r *Run) Happened(now time.Time, e pregel.Event) { r.trail.Happened(now, e) }

// Flush makes entries of all refusals that are in none yet: the run ends, or is continued as a new one.
func (r *Run) Flush(now time.Time) []Action {
	r.flush(now, true)
	return r.Actions()
}

func (r *Run) flush(now time.Time, all bool) { r.trail.Flush(now, all) }
