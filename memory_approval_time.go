package superstep

import (
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// limit gives those who are asked the action's time to answer.
func (p *memoryApproval) limit(now time.Time) {
	p.warn, p.due = time.Time{}, time.Time{}
	if p.action.Within <= 0 {
		return
	}
	p.due = now.Add(time.Duration(p.action.Within) * time.Millisecond)
	if p.action.Warn > 0 {
		p.warn = p.due.Add(-time.Duration(p.action.Warn) * time.Millisecond)
	}
}

// timeApprovals sets the timer for what is due first. There is none while nothing waits for a time.
func (t *memoryThread) timeApprovals() {
	a := &t.approvals
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	var first time.Time
	for _, p := range a.pending {
		for _, at := range []time.Time{p.warn, p.due} {
			if !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	if !first.IsZero() && t.view.rests() {
		a.timer = time.AfterFunc(time.Until(first), t.approvalsDue)
	}
}

// approvalsDue warns, and ends the approvals whose time is over.
func (t *memoryThread) approvalsDue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.view.rests() {
		return // they are looked after when it rests again
	}
	now := time.Now()
	var given []pregel.Answer
	for _, p := range slices.Clone(t.approvals.pending) {
		if !p.warn.IsZero() && !p.warn.After(now) {
			p.warn = time.Time{}
			t.audit.note(trail.Warned(p.question, p.action, p.due))
		}
		if p.due.IsZero() || p.due.After(now) {
			continue
		}
		if answer, silent := t.silent(p, now); silent {
			given = append(given, answer)
		}
	}
	t.showApprovals()
	t.timeApprovals()
	if len(given) > 0 {
		t.giveApprovals(given)
	}
}

// silent does what the action says of silence: it returns the answer that this is, or false when the question stays open.
func (t *memoryThread) silent(p *memoryApproval, now time.Time) (pregel.Answer, bool) {
	switch {
	case p.action.Silence == approval.SilenceEscalate && !p.escalated:
		p.escalated, p.asked = true, p.action.Escalate
		p.limit(now)
		t.audit.note(trail.Escalated(p.question, p.action))
		return pregel.Answer{}, false
	case p.action.Silence == approval.SilencePause:
		p.missed, p.due = p.due, time.Time{}
		t.audit.note(trail.Missed(p.question, p.action))
		if t.view.Paused == nil {
			by, why := trail.Silence(p.question)
			t.view.Paused = &PauseView{By: by, Reason: why, At: now}
			t.pause.rests(t)
		}
		return pregel.Answer{}, false
	}
	d := p.action.Silent(p.question, p.votes, now)
	t.audit.note(trail.Expired(p.action, d))
	t.settleApproval(p, "nobody in time")
	raw, err := json.Marshal(d)
	if err != nil {
		t.view.Problem = err.Error()
		return pregel.Answer{}, false
	}
	return pregel.Answer{QuestionID: p.question, Value: raw}, true
}

// giveApprovals gives answers that no call gave: the run goes on, unless it is paused.
func (t *memoryThread) giveApprovals(answers []pregel.Answer) {
	if t.view.Paused != nil {
		byID := map[string]pregel.Value{}
		for _, a := range answers {
			byID[a.QuestionID] = a.Value
		}
		t.pause.keep(t, byID)
		return
	}
	t.events.again(answers)
}
