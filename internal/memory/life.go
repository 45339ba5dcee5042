package memory

import (
	"context"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// use is the gate for those who act upon an approval.
func (m *Runtime) use(ctx context.Context, c approval.UseCheck) (approval.Ruling, error) {
	if m.Gate == nil {
		return approval.UseWithoutGate(c, time.Now()), nil
	}
	return m.Gate.Use(ctx, c)
}

// Asks implements [life.Thread].
func (t *threadRun) Asks() []pregel.OpenQuestion { return t.open }

// Stand implements [life.Thread].
func (t *threadRun) Stand() life.Stand {
	running := t.stands.Status == thread.StatusRunning
	return life.Stand{
		Status: string(t.view.Status), Standing: !running || t.held, Stopped: t.stands.Status == thread.StatusStopped,
		Failed: t.stands.Status.Failed() || t.stands.Status == thread.StatusCancelled, Held: t.held, Blind: running,
	}
}

// take has life take a command in; t.mu is held, so that nothing changes while the gate is asked.
func (t *threadRun) take(ctx context.Context, c life.Command) (any, error) {
	t.listen()
	if err := t.life.Check(c, t.of.Gate.Governs()); err != nil {
		return nil, runtime.RefusedByLife(t.graph, t.id, err)
	}
	turn := t.life.Take(c, time.Now())
	for turn.Asks() {
		t.act(turn.Actions)
		turn = t.life.Ruled(turn, t.ask(ctx, turn), time.Now())
	}
	t.act(turn.Actions)
	return turn.Reply, runtime.RefusedByLife(t.graph, t.id, turn.Err)
}

// proven returns who asks for that to be done to the thread, when they may: by a token that the gate allows, or as they say where
// rules ask for none. may says why it cannot be done now; nil for never.
func (t *threadRun) proven(ctx context.Context, what approval.Control, a runtime.Asker, may func() error) (by life.Actor, err error) {
	_, err = t.take(ctx, life.Act{Name: string(what.Op), By: a.By, Token: a.Token, What: what, May: may,
		Do: func(who life.Actor) any { by = who; return nil }})
	return by, err
}

// ask asks the gate what it says of a command. Without a gate everybody may do everything, and every answer counts as that of
// whoever it says.
func (t *threadRun) ask(ctx context.Context, turn life.Turn) (word life.Word) {
	ctx, cancel := context.WithTimeout(ctx, graphadapter.VerifyWithin)
	defer cancel()
	gate := t.of.Gate
	if p := turn.Control; p != nil {
		word.Control = approval.Ruling{Allowed: true}
		if gate == nil || p.Token == "" && !gate.Governs() {
			return word
		}
		var err error
		word.Control, err = gate.Control(ctx, approval.ControlCheck{Thread: t.id, Graph: t.graph, Control: p.Control, By: p.By, Token: p.Token})
		if err != nil {
			word.Control = life.Unavailable
		}
		return word
	}
	reply := approval.ReplyWithoutGate
	if gate != nil {
		reply = gate.Reply
	}
	word.Replies, word.Err = t.g.Verify(ctx, turn.Verify.Request, reply)
	return word
}

// act does what life has decided; t.mu is held.
func (t *threadRun) act(actions []life.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case life.Noted:
			t.entries = append(t.entries, a.Entry)
			if n := len(t.entries); n > maxAudit {
				t.entries = slices.Delete(t.entries, 0, n-maxAudit)
			}
		case life.Shown:
			t.hold(!a.At.IsZero())
		}
	}
}

// note adds to the audit; t.mu is held.
func (t *threadRun) note(entries ...approval.Entry) {
	t.life.Note(time.Now(), entries...)
	t.act(t.life.Actions())
}

// hold shuts the gate of a run that is under way and paused, and opens it when the run goes on.
func (t *threadRun) hold(shut bool) {
	switch {
	case t.gate == nil: // a thread that began with an update has none
	case shut && t.stands.Status == thread.StatusRunning:
		t.gate.Shut()
	case !shut:
		if t.held {
			t.held, t.done = false, make(chan struct{})
		}
		t.gate.Open()
	}
}

// shown makes the view that people are given, of where the run stands and of what life knows. Views that were handed out stay
// as they are.
func (t *threadRun) shown() {
	v, known := t.stands, &t.life.State
	if c := t.life.Report(); c != nil && c.Mode != life.CancelKeep && (v.Status == thread.StatusCancelled || t.life.Undoing() != nil) {
		v.Cancel = runtime.CancelView(c)
		v.Cancel.Waits = t.settles
	}
	v.Refused = slices.Clone(known.Refused)
	if v.Kept = runtime.KeptViews(known.Kept); known.Paused != nil {
		paused := *known.Paused // life's own is not handed out
		v.Paused = &paused
	}
	if v.Status != thread.StatusRunning {
		v.Questions, v.Waits = runtime.QuestionsOf(t.life.Questions()), runtime.WaitViews(t.life.Waits(), runtime.DueIn(known.Due))
		runtime.AddDue(v.Questions, known.Due)
		for _, q := range v.Questions {
			runtime.AddPending(q, t.life.Shown())
		}
	}
	if v.Paused != nil && (v.Rests() || t.held) {
		v.Status = thread.StatusPaused
	}
	t.view = v
}

// listen brings the audit up to date with what the engine has told; t.mu is held.
func (t *threadRun) listen() {
	t.heard.mu.Lock()
	all := t.heard.all
	t.heard.all = nil
	t.heard.mu.Unlock()
	for _, e := range all {
		t.life.Happened(e.at, e.Event)
	}
	t.act(t.life.Actions())
}

// maxAudit bounds the entries that a thread in memory keeps: the newest. Its chain counts all of them.
const maxAudit = 10_000

// noReason is why a run was cancelled for which nobody gave a reason.
const noReason = "no reason given"

func (t *threadRun) reason() string {
	if c := t.life.State.Cancel; c != nil && c.Reason != "" {
		return c.Reason
	}
	return noReason
}

// cancelled notes that the run ends as it was asked to; t.mu is held.
func (t *threadRun) cancelled() {
	if !t.life.CancelBegun() {
		t.act(t.life.Cancelled(noReason, time.Now()))
		t.act(t.life.Flush(time.Now()))
	}
}
