package life

import (
	"cmp"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/clip"
)

// The bounds of what a run that undoes its effects keeps in mind: an effect is forgotten once it is undone.
const (
	// maxLeft bounds the effects that a report lists by name.
	maxLeft = 200
	// maxUndoAsked bounds the effects that people are asked about. The others are listed as left.
	maxUndoAsked = 100
	// maxLeftReason bounds why an effect was left, in bytes.
	maxLeftReason = 500
)

// UndoHost is told what became of effects that were to be undone.
type UndoHost interface {
	// KeepUndone tells the tasks that run next on the thread.
	KeepUndone(c taskrun.Compensation, state ledger.State, evidence string) error
	// Undid tells those who read what the thread did outside.
	Undid(e pregel.Event)
}

// Undo undoes the effects of a cancelled run, one at a time, and has people decide about the effects that no program can undo:
//
//	undo := run.BeginUndo(host)
//	undo.Add(page)
//	for c, ok := undo.Next(false, now); ok; c, ok = undo.Next(false, now) {
//		undo.Ended(call(c), nil, now)
//	}
//
// The host then waits while [Undo.Waits], and calls [Undo.Rule] for each answer: an effect that is to be undone again is the
// next one. Meanwhile the run asks about its effects instead of what its tasks ask. [Undo.Leave] and [Undo.End] end all of it.
type Undo struct {
	run  *Run
	host UndoHost
	// queue are the effects that are still to be undone, and asked the effects that people decide about.
	queue, asked []*undoing
	under        *undoing // the one that is being undone
}

type undoing struct {
	taskrun.Compensation
	undone   taskrun.Undone
	question pregel.OpenQuestion
	rulings  int
}

// BeginUndo begins to undo the effects of a run that was cancelled: see [Run.Cancelled].
func (r *Run) BeginUndo(host UndoHost) *Undo {
	r.undo = &Undo{run: r, host: host}
	return r.undo
}

// Undoing is what undoes the run's effects, nil while nothing does.
func (r *Run) Undoing() *Undo { return r.undo }

// Add takes in effects that are to be undone, in that order.
func (u *Undo) Add(page taskrun.StandingReply) {
	u.run.Report().Gone = page.Gone
	for _, c := range page.Effects {
		u.queue = append(u.queue, &undoing{Compensation: c})
	}
}

// Next is the effect to undo now; false when there is none. full says that the run's history takes no more.
func (u *Undo) Next(full bool, now time.Time) (taskrun.Compensation, bool) {
	for len(u.queue) > 0 {
		e := u.queue[0]
		u.queue = u.queue[1:]
		switch {
		case u.run.Enough():
			u.leave(e, "the run was ended before it was undone", now)
		case full:
			u.leave(e, "the run's history is full: cancel the thread again in the same way", now)
		default:
			e.undone, u.under = taskrun.Undone{}, e
			return e.Compensation, true
		}
	}
	return taskrun.Compensation{}, false
}

// Ended takes in what became of the effect that was [Undo.Next]. An error says that nobody knows, since the run was ended.
func (u *Undo) Ended(undone taskrun.Undone, err error, now time.Time) {
	e := u.under
	u.under, e.undone = nil, undone
	switch {
	case err != nil:
		e.undone.Calls = max(e.undone.Calls, 1)
		u.leave(e, "the run was ended while it was being undone: "+err.Error(), now)
	case undone.State == taskrun.UndoDone:
		u.done(e, ledger.StateCompensated, undone.Evidence, now)
	case undone.State == taskrun.UndoAbsent:
		u.done(e, ledger.StateFailed, undone.Evidence, now)
	default:
		u.ask(e, now)
	}
}

// Waits reports whether people are to decide about effects.
func (u *Undo) Waits() bool { return len(u.asked) > 0 && !u.run.Enough() }

// Rule does what people decided about effects.
func (u *Undo) Rule(now time.Time) {
	for _, a := range u.run.GiveAnswers() {
		at := slices.IndexFunc(u.asked, func(e *undoing) bool { return e.question.ID == a.QuestionID })
		if at < 0 {
			continue
		}
		e, by := u.asked[at], cmp.Or(a.By, "a person")
		u.asked = slices.Delete(u.asked, at, at+1)
		e.rulings++
		switch taskrun.ReadUndoRuling(a.Value) {
		case taskrun.UndoRuledDone:
			u.done(e, ledger.StateCompensated, "undone, says "+by, now)
		case taskrun.UndoRuledRepeat:
			u.queue = append(u.queue, e)
		default:
			u.leave(e, "left, says "+by, now)
		}
	}
}

// Leave leaves the effects that nobody has decided about: the run ends.
func (u *Undo) Leave(now time.Time) {
	for _, e := range u.asked {
		u.leave(e, e.undone.Reason, now)
	}
	u.asked = nil
}

// End says that nothing is undone any more.
func (u *Undo) End() { u.run.undo = nil }

func (u *Undo) questions() (out []pregel.OpenQuestion) {
	for _, e := range u.asked {
		out = append(out, e.question)
	}
	return out
}

// ask asks a person about an effect that no program can undo.
func (u *Undo) ask(e *undoing, now time.Time) {
	if len(u.asked) >= maxUndoAsked || u.run.CancelMode() == CancelRollback {
		u.leave(e, e.undone.Reason, now)
		return
	}
	u.tell(e, e.Effect.State, "not undone: "+e.undone.Reason)
	e.question = taskrun.UndoQuestion(u.run.thread, e.Compensation, e.undone, e.rulings)
	u.asked = append(u.asked, e)
	u.run.Note(now, entryUnclear(e.Compensation, e.question.ID, e.undone.Reason))
}

// done notes that the outside does not have an effect any more.
func (u *Undo) done(e *undoing, state ledger.State, evidence string, now time.Time) {
	if err := u.host.KeepUndone(e.Compensation, state, evidence); err != nil {
		u.leave(e, "the thread cannot be told that it is undone: "+err.Error(), now)
		return
	}
	u.run.Report().Undone++
	u.tell(e, state, evidence)
	u.run.Note(now, entryUndone(e.Compensation, state, evidence))
}

// leave notes that an effect stays as it is.
func (u *Undo) leave(e *undoing, reason string, now time.Time) {
	if err := u.host.KeepUndone(e.Compensation, e.Effect.State, e.Effect.Evidence); err != nil {
		reason += "; the thread cannot be told: " + err.Error()
	}
	reason = clip.Text(reason, maxLeftReason)
	u.tell(e, e.Effect.State, "not undone: "+reason)
	u.run.Note(now, entryLeft(e.Compensation, reason))
	report := u.run.Report()
	if len(report.Left) >= maxLeft {
		report.More++
		return
	}
	report.Left = append(report.Left, LeftEffect{Key: e.Effect.Key, Effect: e.Effect.Name, Node: e.Node, Reason: reason})
}

func (u *Undo) tell(e *undoing, state ledger.State, evidence string) {
	u.host.Undid(taskrun.UndoEvent(e.Compensation, state, evidence, e.undone.Calls))
}

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
		return refuse(BadRequest, "a run is cancelled in one of the modes keep, drop, rollback and compensate, with a reason of at most 1 KiB")
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
	return r.CancelBegun() && r.CancelMode().Undoes() && c.Mode == CancelKeep
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
