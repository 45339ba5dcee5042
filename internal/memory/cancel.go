package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// memoryUndo is the undoing of a thread's effects. It is guarded by the thread's lock.
type memoryUndo struct {
	of     *taskrun.Thread
	parked []*memoryParked
}

// memoryParked is an effect that a person has to decide about.
type memoryParked struct {
	of       taskrun.Compensation
	undone   taskrun.Undone
	question pregel.OpenQuestion
	rulings  int
}

// CancelRun implements runtime.Runtime.
func (m *Runtime) CancelRun(ctx context.Context, g *graphadapter.Graph, r thread.CancelRequest) (thread.View, error) {
	if err := runtime.CheckCancel(r); err != nil {
		return thread.View{}, err
	}
	r.Mode = cmp.Or(r.Mode, thread.CancelKeep)
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return thread.View{}, err
	}
	t.mu.Lock()
	undoing := t.undo != nil
	if err := t.takeCancel(ctx, r); err != nil {
		defer t.mu.Unlock()
		return t.view, err
	}
	t.mu.Unlock()
	if err := t.settle(ctx); err != nil {
		return thread.View{}, err
	}
	defer t.mu.Unlock()
	switch {
	case undoing:
		if t.undo != nil && t.life.Enough() {
			t.endUndo()
		}
	case t.stands.Rests():
		t.conclude()
	}
	if !undoing && r.Mode != thread.CancelKeep && t.stands.Status != thread.StatusFinished {
		return t.cancelHard(ctx, g, r)
	}
	return t.view, nil
}

// takeCancel takes a request in, and tells a run that is under way; t.mu is held. One that is over is left as it is, but for
// what the mode wants to be undone.
func (t *memoryThread) takeCancel(ctx context.Context, r thread.CancelRequest) error {
	open := t.undo != nil || t.stands.Status == thread.StatusRunning || t.stands.Rests()
	if t.done == nil || !open && r.Mode == thread.CancelKeep {
		return nil
	}
	if !open { // it is cleaned up behind
		t.life = life.New(t.id, t.graph, t, t.life.Left())
	}
	_, err := t.take(ctx, life.Cancel{ID: cmp.Or(r.ID, uuid.NewString()), Mode: life.CancelMode(r.Mode), Reason: r.Reason, By: r.By, Token: r.Token})
	if err != nil || t.undo != nil {
		return err
	}
	t.life.Unpaused()
	t.hold(false)
	if t.stands.Status == thread.StatusRunning {
		t.cancel(&runtime.CancelledError{Reason: t.reason()})
	}
	t.shown()
	return nil
}

// noReason is why a run was cancelled for which nobody gave a reason.
const noReason = "no reason given"

func (t *memoryThread) reason() string {
	if c := t.life.State.Cancel; c != nil && c.Reason != "" {
		return c.Reason
	}
	return noReason
}

// cancelled notes that the run ends as it was asked to; t.mu is held.
func (t *memoryThread) cancelled() {
	if !t.life.CancelBegun() {
		t.act(t.life.Cancelled(noReason, time.Now()))
		t.act(t.life.Flush(time.Now()))
	}
}

// conclude ends a run that rests as cancelled; t.mu is held.
func (t *memoryThread) conclude() {
	t.cancelled()
	t.stands.Status, t.stands.Error, t.stands.Closed = thread.StatusCancelled, t.reason(), time.Now()
	t.stands.Held, t.stands.Failure = false, nil
	t.cause, t.open = &runtime.CancelledError{Reason: t.reason()}, nil
	t.shown()
	t.time()
}

// cancelHard forgets the superstep under way, and begins to undo effects when the mode wants it; t.mu is held.
func (t *memoryThread) cancelHard(ctx context.Context, g *graphadapter.Graph, r thread.CancelRequest) (thread.View, error) {
	d := t.of.driver.Thread(g, t.id)
	if err := d.Drop(ctx); err != nil {
		return t.view, err
	}
	t.life.GiveAnswers()
	t.life.ForgetWaits()
	t.stands.Cancel = &thread.CancelView{Mode: r.Mode, Reason: r.Reason, By: t.life.State.Cancel.By.Name()}
	if t.conclude(); r.Mode != thread.CancelCompensate {
		return t.view, nil
	}
	t.g, t.undo = g, &memoryUndo{of: d}
	standing := t.effects.standing()
	t.undoing(ctx, func(ctx context.Context) {
		for _, e := range standing {
			t.undoOne(ctx, &memoryParked{of: e})
		}
	})
	t.mu.Unlock()
	err := t.settle(ctx)
	if err != nil {
		t.mu.Lock()
	}
	return t.view, err
}

// undoing does that in the background, as a run, and then waits for people or ends; t.mu is held.
func (t *memoryThread) undoing(ctx context.Context, undo func(context.Context)) {
	t.stands.Status, t.stands.Error, t.stands.Closed = thread.StatusRunning, "", time.Time{}
	t.cause = nil
	done := make(chan struct{})
	t.done = done
	t.shown()
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(done)
		undo(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.askOrEnd()
	}()
}

func (t *memoryThread) undoOne(ctx context.Context, p *memoryParked) {
	t.mu.Lock()
	enough, run, g := t.life.Enough(), t.options.Context, t.g
	t.mu.Unlock()
	if enough {
		t.leave(ctx, p, "the run was ended before it was undone")
		return
	}
	journal, err := graphadapter.NewMemoryJournal(nil)
	if err == nil {
		p.undone, err = taskrun.Compensate(ctx, g, p.of, taskrun.CompensateEnv{Thread: t.id, Context: pregel.Value(run), Journal: journal,
			Settling: func(until time.Time) { t.waitsFor(p.of, until) }})
	}
	switch {
	case err != nil:
		t.leave(ctx, p, err.Error())
	case p.undone.State == taskrun.UndoDone:
		t.undone(ctx, p, ledger.StateCompensated, p.undone.Evidence)
	case p.undone.State == taskrun.UndoAbsent:
		t.undone(ctx, p, ledger.StateFailed, p.undone.Evidence)
	default:
		t.park(p)
	}
}

// waitsFor notes until when the run waits before it goes on to undo an effect; the zero time means that it goes on.
func (t *memoryThread) waitsFor(of taskrun.Compensation, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := *t.stands.Cancel // somebody may have been given the other
	c.Waits = nil
	if !until.IsZero() {
		c.Waits = &thread.SettleView{Effect: of.Effect.Name, Key: of.Effect.Key, Until: until}
	}
	t.stands.Cancel = &c
	t.shown()
}

func (t *memoryThread) undone(ctx context.Context, p *memoryParked, state ledger.State, evidence string) {
	if err := t.undo.of.KeepUndone(ctx, p.of, state, evidence); err != nil {
		t.leave(ctx, p, "the thread cannot be told: "+err.Error())
		return
	}
	t.effects.Observe(taskrun.UndoEvent(p.of, state, evidence, p.undone.Calls))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stands.Cancel.Undone++
	t.note(life.EntryUndone(p.of, state, evidence))
}

func (t *memoryThread) leave(ctx context.Context, p *memoryParked, reason string) {
	if err := t.undo.of.KeepUndone(ctx, p.of, p.of.Effect.State, p.of.Effect.Evidence); err != nil {
		reason += "; the thread cannot be told: " + err.Error()
	}
	t.effects.Observe(taskrun.UndoEvent(p.of, p.of.Effect.State, "not undone: "+reason, p.undone.Calls))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stands.Cancel.Left = append(t.stands.Cancel.Left,
		thread.LeftEffect{Key: p.of.Effect.Key, Effect: p.of.Effect.Name, Node: p.of.Node, Reason: reason})
	t.note(life.EntryLeft(p.of, reason))
}

func (t *memoryThread) park(p *memoryParked) {
	t.effects.Observe(taskrun.UndoEvent(p.of, p.of.Effect.State, "not undone: "+p.undone.Reason, p.undone.Calls))
	p.question = taskrun.UndoQuestion(t.id, p.of, p.undone, p.rulings)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undo.parked = append(t.undo.parked, p)
	t.note(life.EntryUnclear(p.of, p.question.ID, p.undone.Reason))
}

// askOrEnd lets the thread wait for people, or ends it; t.mu is held.
func (t *memoryThread) askOrEnd() {
	if len(t.undo.parked) == 0 || t.life.Enough() {
		t.endUndo()
		return
	}
	t.stands.Status = thread.StatusWaiting
	t.shown()
}

// endUndo ends the thread, and lists what nobody decided about; t.mu is held.
func (t *memoryThread) endUndo() {
	for _, p := range t.undo.parked {
		t.note(life.EntryLeft(p.of, p.undone.Reason))
		t.stands.Cancel.Left = append(t.stands.Cancel.Left,
			thread.LeftEffect{Key: p.of.Effect.Key, Effect: p.of.Effect.Name, Node: p.of.Node, Reason: p.undone.Reason})
	}
	of := t.undo.of
	t.undo = nil
	t.goBack(of)
	t.conclude()
}

// goBack lets the thread go on before the oldest superstep of which an effect was undone; t.mu is held.
func (t *memoryThread) goBack(of *taskrun.Thread) {
	to, err := t.effects.rewind()
	var made *pregel.Record
	if err == nil {
		made, err = of.Rewind(context.Background(), to) // no run has the thread
	}
	switch {
	case err != nil:
		t.stands.Cancel.Halted = err.Error()
	case made != nil:
		t.stands.Cancel.Checkpoint = made.Checkpoint.ID
	}
}

// rule does what people decided about effects that could not be undone; t.mu is held.
func (t *memoryThread) rule(ctx context.Context, given []pregel.Answer) {
	asked := t.undo.parked
	t.undo.parked = nil
	t.undoing(ctx, func(ctx context.Context) {
		for _, p := range asked {
			at := slices.IndexFunc(given, func(a pregel.Answer) bool { return a.QuestionID == p.question.ID })
			if at < 0 {
				t.mu.Lock()
				t.undo.parked = append(t.undo.parked, p)
				t.mu.Unlock()
				continue
			}
			by := cmp.Or(given[at].By, "a person")
			switch p.rulings++; taskrun.ReadUndoRuling(given[at].Value) {
			case taskrun.UndoRuledDone:
				t.undone(ctx, p, ledger.StateCompensated, "undone, says "+by)
			case taskrun.UndoRuledRepeat:
				t.undoOne(ctx, p)
			default:
				t.leave(ctx, p, "left, says "+by)
			}
		}
	})
}

// standing are the effects to undo.
func (m *memoryEffects) standing() []taskrun.Compensation {
	m.mu.Lock()
	defer m.mu.Unlock()
	request := taskrun.StandingRequest{}
	var out []taskrun.Compensation
	for more := true; more; {
		page := request.Page(m.all.Standing())
		out = append(out, page.Effects...)
		request.Skip, more = len(out), page.More
	}
	return out
}
