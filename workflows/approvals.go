package workflows

import (
	"encoding/json"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// The bounds of what a run keeps of its approvals.
const (
	maxUsedTokens = 1000
	maxViewers    = 20
)

// approvals is what a run knows of the actions that wait for approval. A run that never asks for one has none of it, and
// no event for it.
type approvals struct {
	protocol.ApprovalState
	// look says that approvals may have been asked for, or withdrawn, since the run last looked.
	look bool
	// life is the context that the run's timers end with.
	life    workflow.Context
	timer   eventTimer
	claims  []*claim
	waiting []protocol.WaitingReply // by signal
	places  map[string]int          // in waiting, by what makes replies the same
	tries   int                     // to verify those
	// answering counts the updates under way that answer.
	answering int
	// closing says that the run is about to be continued as a new one: nothing more is claimed.
	closing bool
	// proving counts what is asked of the run and being verified.
	proving int
	trail   trail.Trail
	// news counts the entries about approvals: what lists show of one changes with them.
	news    int
	entries []approval.Entry // of this run, the latest of them
}

// openApproval is an approval that the run asks for now.
type openApproval struct {
	pregel.OpenQuestion
	action approval.Action
}

// openApprovals are the open questions that ask for approvals, in task order. An action that cannot be read is one that
// nobody can approve.
func (r *run) openApprovals() []openApproval {
	var out []openApproval
	for _, q := range r.unanswered() {
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
func (r *run) asksFor(question string) (openApproval, bool) {
	open := r.openApprovals()
	at := slices.IndexFunc(open, func(o openApproval) bool { return o.ID == question })
	if at < 0 {
		return openApproval{}, false
	}
	return open[at], true
}

// pending returns what is known of an approval that waits; nil when the run does not wait for it.
func (r *run) pending(question string) *protocol.PendingApproval {
	for i := range r.approvals.Pending {
		if r.approvals.Pending[i].Question == question {
			return &r.approvals.Pending[i]
		}
	}
	return nil
}

// attendApprovals looks after the approvals that are new, and those that are not asked for any more. It runs in the main
// coroutine only.
func (r *run) attendApprovals(ctx workflow.Context) {
	if !r.approvals.look || r.inbox.changing() {
		return
	}
	r.approvals.look = false
	open := r.openApprovals()
	kept := r.approvals.Pending[:0:0]
	for _, p := range r.approvals.Pending {
		if slices.ContainsFunc(open, func(o openApproval) bool { return o.ID == p.Question && o.action.Digest() == p.Digest }) {
			kept = append(kept, p)
			continue
		}
		r.audit(ctx, trail.Withdrawn(p.Question, p.ParamsHash, trail.NotAsked))
	}
	r.approvals.Pending = kept
	for _, o := range open {
		if r.pending(o.ID) == nil {
			r.approvals.Pending = append(r.approvals.Pending, asked(o, workflow.Now(ctx)))
			r.audit(ctx, trail.Asked(o.ID, o.action))
		}
	}
	r.timeApprovals(ctx)
}

// asked is an approval that is asked for from now on.
func asked(o openApproval, now time.Time) protocol.PendingApproval {
	p := protocol.PendingApproval{Question: o.ID, Node: o.Node, Digest: o.action.Digest(), ParamsHash: o.action.ParamsHash, Asked: o.action.Approvers, Need: o.action.Needs(0)}
	limit(&p, o.action, now)
	return p
}

// limit gives those who are asked the action's time to answer.
func limit(p *protocol.PendingApproval, a approval.Action, now time.Time) {
	p.Warn, p.Due = time.Time{}, time.Time{}
	if a.Within <= 0 {
		return
	}
	p.Due = now.Add(time.Duration(a.Within) * time.Millisecond)
	if a.Warn > 0 {
		p.Warn = p.Due.Add(-time.Duration(a.Warn) * time.Millisecond)
	}
}

// withdrawAll notes that a run which ends asks for no approval any more.
func (r *run) withdrawAll(ctx workflow.Context, reason string) {
	for _, p := range r.approvals.Pending {
		r.audit(ctx, trail.Withdrawn(p.Question, p.ParamsHash, reason))
	}
	r.approvals.Pending = nil
	for _, w := range r.approvals.takeWaiting(len(r.approvals.waiting)) {
		r.refuseWaiting(ctx, w, protocol.AnswerRefusal{Question: w.Request.Question, Ruling: approval.Ruling{Reason: reason}})
	}
}

// settled forgets an approval that was decided.
func (r *run) settled(question string) {
	r.approvals.Pending = slices.DeleteFunc(slices.Clone(r.approvals.Pending),
		func(p protocol.PendingApproval) bool { return p.Question == question })
}

// approvalState is what the thread's next execution has to know; nil when it never asked for an approval, and has no audit.
func (r *run) approvalState() *protocol.ApprovalState {
	if r.approvals.Chain.Count == 0 && len(r.approvals.Pending) == 0 {
		return nil
	}
	state := r.approvals.ApprovalState
	return &state
}

// shownApprovals are the approvals that wait, for those who look at the run.
func (r *run) shownApprovals() []protocol.PendingApproval {
	out := slices.Clone(r.approvals.Pending)
	for i := range out {
		if c := r.claimOf(out[i].Question); c != nil {
			out[i].Claimed, out[i].Busy = c.by, true
		}
	}
	return out
}

// busy reports whether somebody is answering, or more waits to be verified than can be handed on.
func (a *approvals) busy() bool {
	return len(a.claims) > 0 || a.answering > 0 || a.proving > 0 || a.backlog() > maxBacklog
}

// useToken remembers that a token counted.
func (a *approvals) useToken(id string) {
	if id == "" {
		return
	}
	a.Used = latest(append(slices.Clip(a.Used), id), maxUsedTokens)
}

// latest are the last of all, at most that many.
func latest[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[len(all)-most:])
}
