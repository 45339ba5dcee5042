package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// timeApprovals keeps one timer, at whatever comes first for an approval: its warning, or the end of its time. A question
// that is being answered is not timed.
func (r *run) timeApprovals(ctx workflow.Context) {
	a := &r.approvals
	first := r.firstDue()
	if first.Equal(a.timer.at) {
		return
	}
	if a.timer.stop != nil {
		a.timer.stop()
	}
	a.timer = eventTimer{at: first}
	if first.IsZero() || a.life.Err() != nil {
		return
	}
	var timing workflow.Context
	timing, a.timer.stop = workflow.WithCancel(a.life)
	timer := workflow.NewTimerWithOptions(timing, max(0, first.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "approval"})
	workflow.Go(a.life, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil && a.timer.at.Equal(first) {
			a.timer = eventTimer{}
			r.fallDue(ctx)
		}
	})
}

// firstDue is when the next approval is due, zero for never.
func (r *run) firstDue() (first time.Time) {
	for _, p := range r.approvals.Pending {
		if r.claimOf(p.Question) != nil {
			continue
		}
		for _, at := range []time.Time{p.Warn, p.Due} {
			if !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// fallDue warns, and ends what nobody has decided in time.
func (r *run) fallDue(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() }) // what is asked is not known before
	if ctx.Err() != nil {
		return
	}
	now := workflow.Now(ctx)
	for _, o := range r.openApprovals() {
		p := r.pending(o.ID)
		if p == nil || r.claimOf(o.ID) != nil {
			continue
		}
		if !p.Warn.IsZero() && !p.Warn.After(now) {
			p.Warn = time.Time{}
			r.audit(ctx, trail.Warned(o.ID, o.action, p.Due))
		}
		if !p.Due.IsZero() && !p.Due.After(now) {
			r.silence(ctx, o, p)
		}
	}
	r.timeApprovals(ctx)
}

// silence does what the action says for the case that nobody decides in time.
func (r *run) silence(ctx workflow.Context, o openApproval, p *protocol.PendingApproval) {
	switch {
	case o.action.Silence == approval.SilenceEscalate && !p.Escalated:
		p.Escalated, p.Asked = true, slices.Clone(o.action.Escalate)
		limit(p, o.action, workflow.Now(ctx))
		r.audit(ctx, trail.Escalated(o.ID, o.action))
	case o.action.Silence == approval.SilencePause:
		by, why := trail.Silence(o.ID)
		r.setPause(ctx, protocol.PauseRequest{ID: fmt.Sprintf("silence/%s/%d", o.ID, p.Due.Unix()), By: by, Reason: why})
		p.Missed, p.Due = p.Due, time.Time{}
		r.audit(ctx, trail.Missed(o.ID, o.action))
	default:
		d := o.action.Silent(o.ID, p.Votes, workflow.Now(ctx))
		r.give(ctx, o.OpenQuestion, "", pregel.Answer{QuestionID: o.ID, Value: decisionValue(d)})
		r.settled(o.ID)
		r.audit(ctx, trail.Expired(o.action, d))
	}
}
