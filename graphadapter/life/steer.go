package life

import (
	"fmt"
	"time"

	"superstep.dev/approval"
)

// Retry lets a run go on that failed and was held open. It has no reply.
type Retry struct {
	// ID makes the request idempotent.
	ID string `json:"id"`
	// By says who asks, and Reason why, for the audit.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
}

func (c Retry) head() head { return head{nameRetry, c.ID, c.By, c.Token} }

func (c Retry) bounds() error {
	if c.ID == "" || len(c.ID) > MaxNameBytes || len(c.By) > MaxNameBytes || len(c.Reason) > MaxReasonBytes {
		return refuse(BadRequest, "a retry has an id and a name of at most %d bytes, and a reason of at most %d", MaxNameBytes,
			MaxReasonBytes)
	}
	return nil
}

func (c Retry) control(*Run) approval.Control { return approval.Control{Op: approval.OpRetry} }

func (c Retry) refusal(r *Run) error {
	stand := r.stand()
	switch {
	case stand.changing() || r.State.Retry:
		return refuse(Busy, "the run is about to go on: look where it stands then")
	case !stand.Failed || !stand.Standing:
		return refuse(NotFailed, "the run has nothing to retry: it is %s", stand.Status)
	case r.State.Paused != nil:
		return refuse(Busy, "%s", r.PausedBy())
	}
	return nil
}

func (c Retry) take(r *Run, by Actor, now time.Time) any {
	r.State.Retry = true
	r.Note(now, by.did(approval.KindRetried, c.Reason))
	return nil
}

func (c Retry) again(*Run, Taken) any { return nil }

// Drain asks a run that is under way to stop before its next superstep. One that rests has stopped; one that was paused in a
// superstep has not. It has no reply.
type Drain struct {
	// ID makes the request idempotent.
	ID     string `json:"id"`
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
}

func (c Drain) head() head { return head{nameDrain, c.ID, c.By, c.Token} }

func (c Drain) bounds() error {
	if len(c.Reason) == 0 || len(c.Reason) > MaxReasonBytes || len(c.ID) > MaxNameBytes || len(c.By) > MaxNameBytes {
		return refuse(BadRequest, "a drain has a reason of 1 to %d bytes, and an id and a name of at most %d", MaxReasonBytes,
			MaxNameBytes)
	}
	return nil
}

func (c Drain) control(*Run) approval.Control { return approval.Control{Op: approval.OpDrain} }

func (c Drain) refusal(*Run) error { return nil }

func (c Drain) take(r *Run, by Actor, now time.Time) any {
	if stand := r.stand(); !stand.Standing || stand.Invoked || stand.Held || r.Waiting() {
		r.State.Drain = c.Reason
		r.Note(now, by.did(approval.KindDrained, c.Reason))
	}
	return nil
}

func (c Drain) again(*Run, Taken) any { return nil }

// Drained forgets why the run was to stop: the engine has been told, or there is no superstep to stop before.
func (s *State) Drained() { s.Drain = "" }

// Act is a command that its host does: a run that goes on with something new, or an update of the state. Who asks is held to
// the rules, its outcome is recognised when it comes again, and what happened is in the audit like that of any other command.
type Act struct {
	// Name and ID are what it is recognised by; an ID of "" is not.
	Name, ID  string
	By, Token string
	// What is what it does to the run; without an Op there is nothing to prove.
	What approval.Control
	// May says why it cannot be done now, nil for never. Do does it and returns the reply, a value that encodes as JSON or nil.
	// Read makes a reply of such a value again; nil where there is none.
	May  func() error
	Do   func(by Actor) any
	Read func(stored []byte) any
	// Later says that Do only begins it: [Run.Done] has the outcome.
	Later bool
}

func (c Act) head() head { return head{c.Name, c.ID, c.By, c.Token} }

func (c Act) bounds() error { return nil }

func (c Act) control(*Run) approval.Control { return c.What }

func (c Act) refusal(*Run) error {
	if c.May == nil {
		return nil
	}
	return c.May()
}

func (c Act) take(_ *Run, by Actor, _ time.Time) any { return c.Do(by) }

func (c Act) again(_ *Run, before Taken) any {
	if c.Read == nil {
		return nil
	}
	return c.Read(before.Reply)
}

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
