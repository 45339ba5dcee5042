package life

import (
	"fmt"
	"time"

	"superstep.dev/approval"
)

// Pause pauses a run, or with Unpause lets it go on. The reply is a [PauseReply].
type Pause struct {
	// ID makes the request idempotent.
	ID      string `json:"id"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Unpause bool   `json:"unpause,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
}

// PauseReply says how the run stands after the request.
type PauseReply struct {
	// Paused is nil for a run that is not paused. A run that was paused before keeps who did it first.
	Paused *Paused `json:"paused,omitempty"`
	// Changed is false when the run was as it was asked to be, or had taken this very request before.
	Changed bool `json:"changed,omitempty"`
}

func (p Pause) head() head { return head{namePause, p.ID, p.By, p.Token} }

func (p Pause) bounds() error {
	if p.ID == "" || len(p.ID) > MaxNameBytes || len(p.By) > MaxNameBytes || len(p.Reason) > MaxReasonBytes {
		return refuse(BadRequest, "a pause has an id and a name of at most %d bytes, and a reason of at most %d", MaxNameBytes,
			MaxReasonBytes)
	}
	return nil
}

// control of an unpause is of this pause, so that a token ends no later one.
func (p Pause) control(r *Run) approval.Control {
	if !p.Unpause {
		return approval.Control{Op: approval.OpPause}
	}
	c := approval.Control{Op: approval.OpUnpause}
	if r.State.Paused != nil {
		c.On = approval.PausedAt(r.State.Paused.At)
	}
	return c
}

func (p Pause) refusal(*Run) error { return nil }

func (p Pause) take(r *Run, by Actor, now time.Time) any {
	changed := r.setPause(p.Unpause, Paused{By: by.Name(), Reason: p.Reason, At: now})
	switch {
	case changed && p.Unpause:
		r.Note(now, by.did(approval.KindUnpaused, p.Reason))
	case changed:
		r.Note(now, by.did(approval.KindPaused, p.Reason))
	}
	return PauseReply{Paused: r.State.Paused, Changed: changed}
}

func (p Pause) again(r *Run, _ Taken) any { return PauseReply{Paused: r.State.Paused} }

// setPause reports whether that changes anything.
func (r *Run) setPause(unpause bool, as Paused) bool {
	if unpause == (r.State.Paused == nil) {
		return false
	}
	if r.State.Paused = &as; unpause {
		as, r.State.Paused = Paused{}, nil
	}
	r.do(Shown{as})
	return true
}

// Unpaused forgets a pause of a run that ends: nobody ends it, and nothing goes on.
func (r *Run) Unpaused() { r.State.Paused = nil }

// PausedBy says who paused the run, for those who are refused for that.
func (r *Run) PausedBy() string {
	p := r.State.Paused
	text := "the run is paused" + byWhom(p.By)
	if p.Reason != "" {
		text += fmt.Sprintf(" (%s)", p.Reason)
	}
	return text + ": unpause it first"
}
