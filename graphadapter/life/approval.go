package life

import (
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// openApproval is an approval that the run asks for now.
type openApproval struct {
	pregel.OpenQuestion
	action approval.Action
}

// openApprovals are the open questions that ask for approvals, in task order. An action that cannot be read is one that
// nobody can approve.
func (r *Run) openApprovals() []openApproval {
	var out []openApproval
	for _, q := range r.Unanswered() {
		if q.Approval == nil {
			continue
		}
		o := openApproval{OpenQuestion: q}
		_ = json.Unmarshal(q.Approval, &o.action)
		out = append(out, o)
	}
	return out
}

// asksFor returns the open approval of that id.
func (r *Run) asksFor(question string) (openApproval, bool) {
	open := r.openApprovals()
	at := slices.IndexFunc(open, func(o openApproval) bool { return o.ID == question })
	if at < 0 {
		return openApproval{}, false
	}
	return open[at], true
}

// Shown are the approvals that wait, for those who look at the run.
func (r *Run) Shown() []Pending {
	out := slices.Clone(r.State.Pending)
	for i := range out {
		if c := r.claimOf(out[i].Question); c != nil {
			out[i].Claimed, out[i].Busy = c.by, true
		}
	}
	return out
}

// attendApprovals asks for the approvals that are new, and withdraws the approvals that nobody needs any more.
func (r *Run) attendApprovals(now time.Time) {
	open := r.openApprovals()
	kept := r.State.Pending[:0:0]
	for _, p := range r.State.Pending {
		if slices.ContainsFunc(open, func(o openApproval) bool { return o.ID == p.Question && o.action.Digest() == p.Digest }) {
			kept = append(kept, p)
			continue
		}
		r.Note(now, entryWithdrawn(p.Question, p.ParamsHash, NotAsked))
	}
	r.State.Pending = kept
	for _, o := range open {
		if r.PendingOn(o.ID) == nil {
			r.State.Pending = append(r.State.Pending, asked(o, now))
			r.Note(now, EntryAsked(o.ID, o.action))
		}
	}
}

// asked is an approval that is asked for from now on.
func asked(o openApproval, now time.Time) Pending {
	p := Pending{Question: o.ID, Node: o.Node, Digest: o.action.Digest(), ParamsHash: o.action.ParamsHash, Asked: o.action.Approvers,
		Need: o.action.Needs(0)}
	p.limit(o.action, now)
	return p
}

// limit gives those who are asked the action's time to answer.
func (p *Pending) limit(a approval.Action, now time.Time) {
	p.Warn, p.Due = time.Time{}, time.Time{}
	if a.Within <= 0 {
		return
	}
	p.Due = now.Add(time.Duration(a.Within) * time.Millisecond)
	if a.Warn > 0 {
		p.Warn = p.Due.Add(-time.Duration(a.Warn) * time.Millisecond)
	}
}

// View notes the first time that somebody says to have looked at an approval's question. Anybody can say so under any name, so
// names are bounded in number too.
type View struct {
	Question string `json:"question"`
	By       string `json:"by"`
}

// Viewed takes in who has looked at a question.
func (r *Run) Viewed(v View, now time.Time) {
	p := r.PendingOn(v.Question)
	if p == nil || v.By == "" || len(v.By) > MaxNameBytes || len(p.Viewers) >= maxViewers || slices.Contains(p.Viewers, v.By) {
		return
	}
	p.Viewers = append(slices.Clip(p.Viewers), v.By)
	r.Note(now, entryViewed(v.Question, v.By))
}
