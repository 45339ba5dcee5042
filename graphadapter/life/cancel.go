package life

import (
	"slices"
	"time"

	"superstep.dev/approval"
)

// CancelMode says what a cancelled run leaves behind.
type CancelMode string

// The modes, the strongest last. Of several that are asked for before the run has begun to end, the strongest counts.
const (
	// CancelKeep keeps what the superstep under way has finished: a retry goes on from there.
	CancelKeep CancelMode = "keep"
	// CancelDrop forgets the superstep under way, and open questions with it.
	CancelDrop CancelMode = "drop"
	// CancelCompensate does the same, and undoes the effects of the thread since it last finished, the newest receipt
	// first. What no program can undo, a person is asked about.
	CancelCompensate CancelMode = "compensate"
)

var cancelModes = []CancelMode{CancelKeep, CancelDrop, CancelCompensate}

// Valid reports whether there is such a mode.
func (m CancelMode) Valid() bool { return slices.Contains(cancelModes, m) }

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

// Cancellation is how a run is being cancelled.
type Cancellation struct {
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     Actor      `json:"by"`
	// Begun says that the run ends so: it is too late for another way. Enough, that somebody wants a run that undoes its effects
	// to end without more being undone.
	Begun  bool `json:"begun,omitempty"`
	Enough bool `json:"enough,omitempty"`
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
			r.Note(now, EntryCancelled(by, string(c.Mode), c.Reason))
		}
		asked.Enough = true
	case !r.CancelBegun() && (asked == nil || slices.Index(cancelModes, c.Mode) > slices.Index(cancelModes, asked.Mode)):
		r.State.Cancel = &Cancellation{Mode: c.Mode, Reason: c.Reason, By: by}
	}
	r.do(Ending{})
	return CancelReply{At: now}
}

func (c Cancel) again(_ *Run, before Taken) any { return read[CancelReply](before) }

func (c Cancel) turnedDown() Refused { return Refused{Question: nameCancel, By: named(c.By)} }

// CancelMode is how the run is to end, if it is cancelled.
func (s *State) CancelMode() CancelMode {
	if s.Cancel == nil {
		return CancelKeep
	}
	return s.Cancel.Mode
}

// Drops reports whether the superstep under way is going to be forgotten.
func (r *Run) Drops() bool { return r.CancelMode() != CancelKeep && !r.of.Stand().Undoing }

// CancelBegun reports whether the run ends as it was asked to.
func (s *State) CancelBegun() bool { return s.Cancel != nil && s.Cancel.Begun }

// Enough reports whether somebody wants a run that undoes its effects to end without more being undone.
func (s *State) Enough() bool { return s.Cancel != nil && s.Cancel.Enough }

// Cancelled notes that the run ends as it was asked to, and withdraws what it asks: from now on it is too late for another way.
// Where nobody asked but the server, why says so.
func (r *Run) Cancelled(why string, now time.Time) []Action {
	if r.State.Cancel == nil {
		r.State.Cancel = &Cancellation{Mode: CancelKeep, Reason: why}
	}
	asked := r.State.Cancel
	r.Note(now, EntryCancelled(asked.By, string(asked.Mode), asked.Reason))
	r.Withdraw(CancelledRun, now)
	asked.Begun = true
	return r.Actions()
}
