package life

import (
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Look says that the run may ask something that it did not, or not any more: [Run.Attend] looks again.
func (r *Run) Look() { r.look = true }

// Attend looks after what the run asks: approvals are asked for and withdrawn, events that were kept are given, waits are
// timed, and what nobody has answered in time is ended. It does nothing while the thread is about to change, or cannot be
// looked into. Afterwards [Run.Due] is when it is to be called at the latest.
func (r *Run) Attend(now time.Time) []Action {
	if stand := r.stand(); stand.changing() || stand.Blind {
		return r.Actions()
	}
	if due := r.Due(); r.look || !due.IsZero() && !due.After(now) {
		r.look = false
		r.attendApprovals(now)
		r.attendSilence(now)
		r.attendWaits(now)
	}
	r.attendNotices(now)
	return r.Actions()
}

// Due is when the first of all waits is over, or the first approval is to be warned about or its time is over; zero for never.
// A question that is being answered has time until that is known.
func (r *Run) Due() time.Time {
	var first time.Time
	sooner := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, d := range r.State.Due {
		sooner(d.At)
	}
	for _, p := range r.State.Pending {
		if r.claimOf(p.Question) == nil {
			sooner(p.Warn)
			sooner(p.Due)
		}
	}
	return first
}

// attendSilence warns, and ends what nobody has decided in time.
func (r *Run) attendSilence(now time.Time) {
	for _, o := range r.openApprovals() {
		p := r.PendingOn(o.ID)
		if p == nil || r.claimOf(o.ID) != nil {
			continue
		}
		if !p.Warn.IsZero() && !p.Warn.After(now) {
			p.Warn = time.Time{}
			r.Note(now, entryWarned(o.ID, o.action, p.Due))
		}
		if !p.Due.IsZero() && !p.Due.After(now) {
			r.silence(o, p, now)
		}
	}
}

// silence does what the action says for the case that nobody decides in time.
func (r *Run) silence(o openApproval, p *Pending, now time.Time) {
	switch {
	case o.action.Silence == approval.SilenceEscalate && !p.Escalated:
		p.Escalated, p.Asked = true, slices.Clone(o.action.Escalate)
		p.limit(o.action, now)
		r.Note(now, entryEscalated(o.ID, o.action))
	case o.action.Silence == approval.SilencePause:
		by, why := Silence(o.ID)
		r.setPause(false, Paused{By: by, Reason: why, At: now})
		p.Missed, p.Due = p.Due, time.Time{}
		r.Note(now, entryMissed(o.ID, o.action))
	default:
		d := o.action.Silent(o.ID, p.Votes, now)
		r.give(o.OpenQuestion, "", pregel.Answer{QuestionID: o.ID, Value: decisionValue(d)}, now)
		r.settled(o.ID)
		r.Note(now, entryExpired(o.action, d))
	}
}
