package superstep

import (
	"cmp"
	"context"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/graphadapter/trail"
)

// memoryUndo is the undoing of a thread's effects. It is guarded by the thread's lock.
type memoryUndo struct {
	reason string
	of     *taskrun.Thread
	parked []*memoryParked
	enough bool // somebody wants it to end
}

// memoryParked is an effect that a person has to decide about.
type memoryParked struct {
	of       taskrun.Compensation
	undone   taskrun.Undone
	question pregel.OpenQuestion
	rulings  int
}

func (m *Memory) cancelRun(ctx context.Context, g *graphadapter.Graph, r CancelRequest) (ThreadView, error) {
	if err := checkCancel(r); err != nil {
		return ThreadView{}, err
	}
	r.Mode = cmp.Or(r.Mode, CancelKeep)
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return ThreadView{}, err
	}
	t.mu.Lock()
	by := trail.Actor{Claimed: r.By}
	if t.done != nil && (t.undo != nil || t.view.Status == StatusRunning || t.view.rests() || r.Mode != CancelKeep) {
		by, err = t.proven(ctx, m, approval.Control{Op: approval.OpCancel, On: string(r.Mode)}, asker{by: r.By, token: r.Token})
	}
	if err != nil {
		defer t.mu.Unlock()
		return t.view, err
	}
	r.By = by.Name()
	undoing := t.undo != nil
	if !undoing {
		t.ending, t.endingBy = &r, by
	}
	switch {
	case undoing && r.Mode == CancelDrop:
		defer t.mu.Unlock()
		return t.view, t.refuse(ErrRunning, "it was being cancelled with mode compensate already: drop came too late")
	case undoing && r.Mode != CancelCompensate:
		if !t.undo.enough {
			t.audit.note(trail.Cancelled(by, string(r.Mode), r.Reason))
		}
		t.undo.enough = true
	case undoing:
	default:
		t.pause.forget(t)
		if t.view.Status == StatusRunning {
			t.cancel(&cancelledError{cmp.Or(r.Reason, noReason)})
		}
	}
	t.mu.Unlock()
	if err := t.settle(ctx); err != nil {
		return ThreadView{}, err
	}
	defer t.mu.Unlock()
	if undoing {
		if t.undo != nil && t.undo.enough {
			t.endUndo()
		}
		return t.view, nil
	}
	if t.view.rests() {
		t.conclude(cmp.Or(r.Reason, noReason))
	}
	if t.view.Status == StatusFinished || r.Mode == CancelKeep {
		t.ending = nil
		return t.view, nil
	}
	return t.cancelHard(ctx, m, g, r)
}

// noReason is why a run was cancelled for which nobody gave a reason.
const noReason = "no reason given"

// noteCancel notes what the thread's run is cancelled for, once; t.mu is held.
func (t *memoryThread) noteCancel() {
	if r := t.ending; r != nil {
		t.ending = nil
		t.audit.note(trail.Cancelled(t.endingBy, string(r.Mode), r.Reason))
		t.withdrawApprovals(trail.CancelledRun)
	}
}

// conclude ends a run that rests as cancelled; t.mu is held.
func (t *memoryThread) conclude(reason string) {
	t.noteCancel()
	t.view.Status, t.view.Error, t.view.Questions, t.view.Closed = StatusCancelled, reason, nil, time.Now()
	t.view.Held, t.view.Failure = false, nil
	t.cause, t.open, t.view.Waits, t.events.waits = &cancelledError{reason}, nil, nil, nil
	t.attendApprovals()
}

// cancelHard forgets the superstep under way, and begins to undo effects when the mode wants it; t.mu is held.
func (t *memoryThread) cancelHard(ctx context.Context, m *Memory, g *graphadapter.Graph, r CancelRequest) (ThreadView, error) {
	compensate := r.Mode == CancelCompensate
	if err := m.driver.Thread(g, t.id).Drop(ctx); err != nil {
		return t.view, err
	}
	t.conclude(cmp.Or(r.Reason, noReason))
	t.events.due = nil // who waits again begins anew
	t.view.Cancel = &CancelView{Mode: r.Mode, Reason: r.Reason, By: r.By}
	if !compensate {
		return t.view, nil
	}
	d := m.driver.Thread(g, t.id)
	t.undo = &memoryUndo{reason: cmp.Or(r.Reason, noReason), of: d}
	standing := t.effects.standing()
	t.undoing(ctx, func(ctx context.Context) {
		for _, e := range standing {
			t.undoOne(ctx, d, g, &memoryParked{of: e})
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
	t.view.Status, t.view.Error, t.view.Questions, t.view.Closed = StatusRunning, "", nil, time.Time{}
	t.cause, t.open = nil, nil
	done := make(chan struct{})
	t.done = done
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(done)
		undo(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.askOrEnd()
	}()
}

func (t *memoryThread) undoOne(ctx context.Context, d *taskrun.Thread, g *graphadapter.Graph, p *memoryParked) {
	t.mu.Lock()
	enough, run := t.undo.enough, t.options.Context
	t.mu.Unlock()
	if enough {
		t.leave(ctx, d, p, "the run was ended before it was undone")
		return
	}
	journal, err := graphadapter.NewMemoryJournal(nil)
	if err == nil {
		p.undone, err = taskrun.Compensate(ctx, g, p.of, taskrun.CompensateEnv{Thread: t.id, Context: pregel.Value(run), Journal: journal,
			Settling: func(until time.Time) { t.waitsFor(p.of, until) }})
	}
	switch {
	case err != nil:
		t.leave(ctx, d, p, err.Error())
	case p.undone.State == taskrun.UndoDone:
		t.undone(ctx, d, p, ledger.StateCompensated, p.undone.Evidence)
	case p.undone.State == taskrun.UndoAbsent:
		t.undone(ctx, d, p, ledger.StateFailed, p.undone.Evidence)
	default:
		t.park(p)
	}
}

// waitsFor notes until when the run waits before it goes on to undo an effect; the zero time means that it goes on.
func (t *memoryThread) waitsFor(of taskrun.Compensation, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := *t.view.Cancel // somebody may have been given the other
	c.Waits = nil
	if !until.IsZero() {
		c.Waits = &SettleView{Effect: of.Effect.Name, Key: of.Effect.Key, Until: until}
	}
	t.view.Cancel = &c
}

func (t *memoryThread) undone(ctx context.Context, d *taskrun.Thread, p *memoryParked, state ledger.State, evidence string) {
	if err := d.KeepUndone(ctx, p.of, state, evidence); err != nil {
		t.leave(ctx, d, p, "the thread cannot be told: "+err.Error())
		return
	}
	t.effects.observe(taskrun.UndoEvent(p.of, state, evidence, p.undone.Calls))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view.Cancel.Undone++
	t.audit.note(trail.Undone(p.of, state, evidence))
}

func (t *memoryThread) leave(ctx context.Context, d *taskrun.Thread, p *memoryParked, reason string) {
	if err := d.KeepUndone(ctx, p.of, p.of.Effect.State, p.of.Effect.Evidence); err != nil {
		reason += "; the thread cannot be told: " + err.Error()
	}
	t.effects.observe(taskrun.UndoEvent(p.of, p.of.Effect.State, "not undone: "+reason, p.undone.Calls))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view.Cancel.Left = append(t.view.Cancel.Left,
		LeftEffect{Key: p.of.Effect.Key, Effect: p.of.Effect.Name, Node: p.of.Node, Reason: reason})
	t.audit.note(trail.Left(p.of, reason))
}

func (t *memoryThread) park(p *memoryParked) {
	t.effects.observe(taskrun.UndoEvent(p.of, p.of.Effect.State, "not undone: "+p.undone.Reason, p.undone.Calls))
	p.question = taskrun.UndoQuestion(t.id, p.of, p.undone, p.rulings)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undo.parked = append(t.undo.parked, p)
	t.audit.note(trail.Unclear(p.of, p.question.ID, p.undone.Reason))
}

// askOrEnd lets the thread wait for people, or ends it; t.mu is held.
func (t *memoryThread) askOrEnd() {
	if len(t.undo.parked) == 0 || t.undo.enough {
		t.endUndo()
		return
	}
	t.view.Status = StatusWaiting
	for _, p := range t.undo.parked {
		t.view.Questions = append(t.view.Questions, questionsOf([]pregel.OpenQuestion{p.question})...)
		t.open = append(t.open, p.question.Question)
	}
}

// endUndo ends the thread, and lists what nobody decided about; t.mu is held.
func (t *memoryThread) endUndo() {
	for _, p := range t.undo.parked {
		t.audit.note(trail.Left(p.of, p.undone.Reason))
		t.view.Cancel.Left = append(t.view.Cancel.Left,
			LeftEffect{Key: p.of.Effect.Key, Effect: p.of.Effect.Name, Node: p.of.Node, Reason: p.undone.Reason})
	}
	of := t.undo.of
	t.conclude(t.undo.reason)
	t.undo = nil
	t.goBack(of)
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
		t.view.Cancel.Halted = err.Error()
	case made != nil:
		t.view.Cancel.Checkpoint = made.Checkpoint.ID
	}
}

// rule does what people decided about effects that could not be undone; t.mu is held.
func (t *memoryThread) rule(ctx context.Context, d *taskrun.Thread, g *graphadapter.Graph, byID map[string]pregel.Value, by string) {
	by = cmp.Or(by, "a person")
	asked := t.undo.parked
	t.undo.parked = nil
	t.undoing(ctx, func(ctx context.Context) {
		for _, p := range asked {
			ruling, given := byID[p.question.ID]
			if !given {
				t.mu.Lock()
				t.undo.parked = append(t.undo.parked, p)
				t.mu.Unlock()
				continue
			}
			switch p.rulings++; taskrun.ReadUndoRuling(ruling) {
			case taskrun.UndoRuledDone:
				t.undone(ctx, d, p, ledger.StateCompensated, "undone, says "+by)
			case taskrun.UndoRuledRepeat:
				t.undoOne(ctx, d, g, p)
			default:
				t.leave(ctx, d, p, "left, says "+by)
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
