package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// eventTimer is the one timer of a run's waits: that of the wait which is over first.
type eventTimer struct {
	at   time.Time // zero while none runs
	stop workflow.CancelFunc
}

// attend looks after the waits that are new: an event that was kept is given to the first of its name, and the others
// are timed. It runs in the main coroutine only.
func (r *run) attend(ctx workflow.Context) {
	r.attendApprovals(ctx)
	r.attendNotices(ctx)
	if !r.events.asked || r.inbox.changing() {
		return
	}
	r.events.asked = false
	var due []protocol.Due
	for _, q := range r.waits() {
		if r.giveKept(ctx, q) {
			continue
		}
		if q.Timeout > 0 {
			due = append(due, protocol.Due{Question: q.ID, At: r.dueAt(ctx, q)})
		}
	}
	r.events.Due, r.events.asked = due, false
	r.time(ctx)
}

// giveKept ends a wait with the oldest event of its name that was kept. Events that do not fit it were sent when nobody
// knew what would: they are noted as refused, and gone.
func (r *run) giveKept(ctx workflow.Context, q pregel.OpenQuestion) bool {
	for {
		at := slices.IndexFunc(r.events.Kept, func(k protocol.KeptEvent) bool { return k.Name == q.Event })
		if at < 0 {
			return false
		}
		kept := r.events.Kept[at]
		r.events.Kept = slices.Delete(slices.Clone(r.events.Kept), at, at+1)
		if err := graphadapter.CheckAnswer(q.Question, kept.Value); err != nil {
			r.inbox.refuse(protocol.Refused{Question: q.ID, Event: kept.Name, By: kept.By, Reason: err.Error(), At: workflow.Now(ctx)})
			continue
		}
		r.give(ctx, q, kept.ID, pregel.Answer{QuestionID: q.ID, Value: kept.Value, By: kept.By})
		return true
	}
}

// dueAt is when a wait is over: what was said when it began counts, whatever the run has gone through since.
func (r *run) dueAt(ctx workflow.Context, q pregel.OpenQuestion) time.Time {
	for _, d := range r.events.Due {
		if d.Question == q.ID {
			return d.At
		}
	}
	return workflow.Now(ctx).Add(time.Duration(q.Timeout) * time.Millisecond)
}

// time keeps the timer at the wait that is over first.
func (r *run) time(ctx workflow.Context) {
	var first time.Time
	for _, d := range r.events.Due {
		if first.IsZero() || d.At.Before(first) {
			first = d.At
		}
	}
	if first.Equal(r.events.timer.at) {
		return
	}
	if r.events.timer.stop != nil {
		r.events.timer.stop()
	}
	r.events.timer = eventTimer{at: first}
	if first.IsZero() {
		return
	}
	var timing workflow.Context
	timing, r.events.timer.stop = workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(timing, max(0, first.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "wait for an event"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil && r.events.timer.at.Equal(first) {
			r.events.timer = eventTimer{}
			r.expire(ctx)
		}
	})
}

// expire ends the waits whose time is over.
func (r *run) expire(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() }) // what waits is not known before
	now := workflow.Now(ctx)
	open := r.waits()
	var due []protocol.Due
	for _, d := range r.events.Due {
		at := slices.IndexFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == d.Question })
		switch {
		case at < 0: // an event came, or the wait was dropped
		case d.At.After(now):
			due = append(due, d)
		default:
			r.give(ctx, open[at], "", pregel.Answer{QuestionID: d.Question, TimedOut: true})
		}
	}
	r.events.Due = due
	r.time(ctx)
}
