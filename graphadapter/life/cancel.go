package life

import (
	"slices"
	"time"

	"superstep.dev/approval"
)

// Cancel ends a run. The reply is a [CancelReply].
type Cancel struct {
	// ID makes the request idempotent.
	ID     string     `json:"id"`
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
}

// CancelReply is the outcome of a cancellation that was taken.
type CancelReply struct {
	At time.Time `json:"at"`
}

func (c Cancel) head() head { return head{nameCancel, c.ID, c.By, c.Token} }

func (c Cancel) bounds() error {
	if !c.Mode.Valid() || len(c.ID) > MaxNameBytes || len(c.By) > MaxNameBytes || len(c.Reason) > MaxReasonBytes {
		return refuse(BadRequest, "a run is cancelled in one of the modes keep, drop and compensate, with a reason of at most 1 KiB")
	}
	return nil
}

func (c Cancel) control(*Run) approval.Control {
	return approval.Control{Op: approval.OpCancel, On: string(c.Mode)}
}

func (c Cancel) refusal(r *Run) error {
	if r.CancelBegun() && c.Mode != r.CancelMode() && !r.endsUndoing(c) {
		return refuse(Busy, "the run is being cancelled with mode %s already; %s came too late", r.CancelMode(), c.Mode)
	}
	return nil
}

// endsUndoing reports whether a request ends a run that undoes its effects before it has undone all.
func (r *Run) endsUndoing(c Cancel) bool {
	return r.CancelBegun() && r.CancelMode() == CancelCompensate && c.Mode == CancelKeep
}

func (c Cancel) take(r *Run, by Actor, now time.Time) any {
	switch asked := r.State.Cancel; {
	case r.endsUndoing(c):
		if !asked.Enough {
			r.Note(now, entryCancelled(by, string(c.Mode), c.Reason))
		}
		asked.Enough = true
	case !r.CancelBegun() && (asked == nil || slices.Index(cancelModes, c.Mode) > slices.Index(cancelModes, asked.Mode)):
		r.State.Cancel = &Cancellation{Mode: c.Mode, Reason: c.Reason, By: by}
	}
	r.do(Ending{})
	return CancelReply{At: now}
}

func (c Cancel) again(_ *Run, before Taken) any { return read[CancelReply](before) }

// Cancelled notes that the run ends as it was asked to, and withdraws what it asks: from now on it is too late for another way.
// Where nobody asked but the server, why says so.
func (r *Run) Cancelled(why string, now time.Time) []Action {
	if c := r.State.Cancel; c != nil {
		c.Report = &CancelReport{Mode: c.Mode, Reason: c.Reason, By: c.By.Name()}
	} else {
		r.State.Cancel = &Cancellation{Mode: CancelKeep, Reason: why}
	}
	asked := r.State.Cancel
	r.Note(now, entryCancelled(asked.By, string(asked.Mode), asked.Reason))
	r.Withdraw(CancelledRun, now)
	asked.Begun = true
	return r.Actions()
}

// Withdraw notes that a run which ends asks for no approval any more, and refuses the replies that wait to be verified.
func (r *Run) Withdraw(why string, now time.Time) {
	for _, p := range r.State.Pending {
		r.Note(now, entryWithdrawn(p.Question, p.ParamsHash, why))
	}
	r.State.Pending = nil
	for _, w := range r.takeWaiting(len(r.Replies)) {
		r.refuseWaiting(w, Ruling{Question: w.Request.Question, Ruling: approval.Ruling{Reason: why}}, now)
	}
}
