package memory

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

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
	undoing := t.life.Undoing() != nil
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
		if u := t.life.Undoing(); u != nil && t.life.Enough() {
			t.endUndo(u)
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
func (t *threadRun) takeCancel(ctx context.Context, r thread.CancelRequest) error {
	open := t.life.Undoing() != nil || t.stands.Status == thread.StatusRunning || t.stands.Rests()
	if t.done == nil || !open && r.Mode == thread.CancelKeep {
		return nil
	}
	if !open { // it is cleaned up behind
		t.life = life.New(t.id, t.graph, t, t.life.Left())
	}
	_, err := t.take(ctx, life.Cancel{ID: cmp.Or(r.ID, uuid.NewString()), Mode: r.Mode, Reason: r.Reason, By: r.By, Token: r.Token})
	if err != nil || t.life.Undoing() != nil {
		return err
	}
	t.life.Unpaused()
	t.hold(false)
	if t.stands.Status == thread.StatusRunning {
		t.cancel(&runtime.CancelledError{Reason: t.reason(), Drops: t.life.Drops()})
	}
	t.shown()
	return nil
}

// conclude ends a run that rests as cancelled; t.mu is held.
func (t *threadRun) conclude() {
	t.cancelled()
	t.stands.Status, t.stands.Error, t.stands.Closed = thread.StatusCancelled, t.reason(), time.Now()
	t.stands.Held, t.stands.Failure = false, nil
	t.cause, t.open = &runtime.CancelledError{Reason: t.reason()}, nil
	t.shown()
	t.time()
}

// cancelHard forgets the superstep under way, and begins to undo effects when the mode wants it; t.mu is held.
func (t *threadRun) cancelHard(ctx context.Context, g *graphadapter.Graph, r thread.CancelRequest) (thread.View, error) {
	d := t.of.driver.Thread(g, t.id)
	if err := d.Drop(ctx); err != nil {
		return t.view, err
	}
	t.life.GiveAnswers()
	t.life.ForgetWaits()
	t.conclude()
	if !r.Mode.Undoes() {
		return t.view, nil
	}
	var only past.Rollback
	if r.Mode == thread.CancelRollback {
		only = past.RollbackNewest
	}
	t.g, t.keeps = g, d
	undo := t.life.BeginUndo(t)
	undo.Add(taskrun.StandingReply{Effects: t.effects.standing(only)})
	t.undoEffects(ctx, undo)
	t.mu.Unlock()
	err := t.settle(ctx)
	if err != nil {
		t.mu.Lock()
	}
	return t.view, err
}

// undoEffects undoes effects in the background, as a run, and then waits for people or ends; t.mu is held.
func (t *threadRun) undoEffects(ctx context.Context, u *life.Undo) {
	t.stands.Status, t.stands.Error, t.stands.Closed = thread.StatusRunning, "", time.Time{}
	t.cause = nil
	done := make(chan struct{})
	t.done = done
	t.shown()
	ctx = t.of.Context(context.WithoutCancel(ctx))
	go func() {
		defer close(done)
		t.mu.Lock()
		defer t.mu.Unlock()
		for of, ok := u.Next(false, time.Now()); ok; of, ok = u.Next(false, time.Now()) {
			undone, err := t.undoOne(ctx, of)
			u.Ended(undone, err, time.Now())
			t.act(t.life.Actions())
		}
		if !u.Waits() {
			t.endUndo(u)
			return
		}
		t.stands.Status = thread.StatusWaiting
		t.shown()
	}()
}

// undoOne undoes one effect. It lets go of t.mu meanwhile.
func (t *threadRun) undoOne(ctx context.Context, of taskrun.Compensation) (taskrun.Undone, error) {
	g, run := t.g, t.options.Context
	t.mu.Unlock()
	defer t.mu.Lock()
	journal, err := graphadapter.NewMemoryJournal(nil)
	if err != nil {
		return taskrun.Undone{}, err
	}
	return taskrun.Compensate(ctx, g, of, taskrun.CompensateEnv{Thread: t.id, Context: pregel.Value(run), Journal: journal,
		Settling: func(until time.Time) { t.settling(of, until) }})
}

// settling notes until when the run waits before it goes on to undo an effect; the zero time means that it goes on.
func (t *threadRun) settling(of taskrun.Compensation, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settles = nil
	if !until.IsZero() {
		t.settles = &thread.SettleView{Effect: of.Effect.Name, Key: of.Effect.Key, Until: until}
	}
	t.shown()
}

// KeepUndone implements [life.UndoHost]; t.mu is held, and no run has the thread.
func (t *threadRun) KeepUndone(c taskrun.Compensation, state ledger.State, evidence string) error {
	return t.keeps.KeepUndone(context.Background(), c, state, evidence)
}

// Undid implements [life.UndoHost].
func (t *threadRun) Undid(e pregel.Event) { t.effects.Observe(e) }

// endUndo ends the thread, and lets it go on before the oldest superstep of which an effect was undone; t.mu is held.
func (t *threadRun) endUndo(u *life.Undo) {
	u.Leave(time.Now())
	u.End()
	t.act(t.life.Actions())
	report := t.life.Report()
	to, err := t.effects.rewind(report.Mode == thread.CancelRollback && report.Whole())
	var made *pregel.Record
	if err == nil {
		made, err = t.keeps.Rewind(context.Background(), to) // no run has the thread
	}
	switch {
	case err != nil:
		report.Halted = err.Error()
	case made != nil:
		report.Checkpoint = made.Checkpoint.ID
	case to.Back:
		report.Back = true
	}
	if report.Back {
		open, err := t.keeps.Questions(context.Background()) // no run has the thread
		if err != nil {
			report.Halted = err.Error()
		}
		t.life.Reopen(open)
	}
	t.conclude()
}
