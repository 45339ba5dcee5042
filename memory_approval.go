package superstep

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// MemoryOption shapes a [Memory].
type MemoryOption interface{ applyMemory(*Memory) }

type memoryOption func(*Memory)

func (o memoryOption) applyMemory(m *Memory) { o(m) }

// WithGate makes a [Memory] hold answers to approvals, and their use, to a gate. Without one every answer counts as that
// of whoever it says ([AnsweredBy]), and every approval that is valid still may be acted upon: that is for tests.
func WithGate(g *approval.Gate) MemoryOption {
	return memoryOption(func(m *Memory) { m.gate = g })
}

// memoryApprovals are the approvals that a thread in memory waits for. It is guarded by the thread's lock.
type memoryApprovals struct {
	pending []*memoryApproval
	// answered says who decided a question, "" for nobody who is known.
	answered map[string]string
	// used are the ids of the tokens that counted: none counts twice, whatever is asked again.
	used  map[string]bool
	timer *time.Timer
}

func (a *memoryApprovals) useToken(id string) {
	if a.used == nil {
		a.used = map[string]bool{}
	}
	a.used[id] = id != ""
}

// memoryApproval is one of them.
type memoryApproval struct {
	question string
	node     string
	action   approval.Action
	digest   string
	asked    []string
	votes    []approval.Vote
	need     int
	// warn is when people are to be warned, due when the time to answer is over; zero for never, or not any more. missed is
	// when it was, of one that stays open.
	warn, due, missed time.Time
	escalated         bool
}

func (a *memoryApprovals) of(question string) *memoryApproval {
	at := slices.IndexFunc(a.pending, func(p *memoryApproval) bool { return p.question == question })
	if at < 0 {
		return nil
	}
	return a.pending[at]
}

// use is the gate for those who act upon an approval.
func (m *Memory) use(ctx context.Context, c approval.UseCheck) (approval.Ruling, error) {
	if m.gate == nil {
		return approval.UseWithoutGate(c, time.Now()), nil
	}
	return m.gate.Use(ctx, c)
}

// attendApprovals looks after the approvals that are asked for since the run last rested, and those that are not any more.
func (t *memoryThread) attendApprovals() {
	a := &t.approvals
	kept := a.pending[:0:0]
	for _, p := range a.pending {
		if slices.ContainsFunc(t.open, func(q pregel.Question) bool { return q.ID == p.question }) {
			kept = append(kept, p)
			continue
		}
		t.audit.note(trail.Withdrawn(p.question, p.action.ParamsHash, trail.NotAsked))
	}
	a.pending = kept
	for _, q := range t.open {
		if q.Approval == nil || a.of(q.ID) != nil {
			continue
		}
		p := &memoryApproval{question: q.ID}
		if at := slices.IndexFunc(t.view.Questions, func(v Question) bool { return v.ID == q.ID }); at >= 0 {
			p.node = t.view.Questions[at].Node
		}
		_ = json.Unmarshal(q.Approval, &p.action) // an action that cannot be read is one that nobody can approve
		p.digest, p.asked, p.need = p.action.Digest(), p.action.Approvers, p.action.Needs(0)
		p.limit(time.Now())
		a.pending = append(a.pending, p)
		t.audit.note(trail.Asked(q.ID, p.action))
	}
	t.showApprovals()
	t.timeApprovals()
}

// withdrawApprovals ends what the thread asks, because its run ends.
func (t *memoryThread) withdrawApprovals(why string) {
	for _, p := range t.approvals.pending {
		t.audit.note(trail.Withdrawn(p.question, p.action.ParamsHash, why))
	}
	t.approvals.pending = nil
	t.audit.flush()
}

// showApprovals brings the view up to date. Views that were handed out stay as they are.
func (t *memoryThread) showApprovals() {
	if len(t.approvals.pending) == 0 {
		return
	}
	t.view.Questions = slices.Clone(t.view.Questions)
	for i, q := range t.view.Questions {
		p := t.approvals.of(q.ID)
		if p == nil || q.Approval == nil {
			continue
		}
		v := *q.Approval
		v.Asked, v.Votes, v.Need, v.Due, v.Escalated = p.asked, slices.Clone(p.votes), p.need, cmp.Or(p.due, p.missed), p.escalated
		t.view.Questions[i].Approval = &v
	}
}

// counted is a reply that a gate allowed.
type counted struct {
	of     *memoryApproval
	vote   approval.Vote
	ruling approval.Ruling
}

// decide counts the replies to approvals among the answers: all of them, or none. It returns the answers that are to be
// given: the decision in place of a reply, and nothing while more approvals are needed.
func (t *memoryThread) decide(ctx context.Context, m *Memory, g *graphadapter.Graph, byID map[string]pregel.Value, a answers,
	by trail.Actor, reply *ResumeReply) (map[string]pregel.Value, error) {
	var all []counted
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if p := t.approvals.of(id); p != nil {
			c, err := t.reply(ctx, m, g, p, byID[id], a)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	t.noteAnswers(byID, by)
	if len(all) == 0 {
		return byID, nil
	}
	given := maps.Clone(byID)
	for _, c := range all {
		decision, decided := t.count(c)
		if reply.Votes, reply.Need = len(c.of.votes), c.of.need; decided {
			reply.Votes++ // the last one, after which they are not kept
		}
		if !decided {
			delete(given, c.of.question)
			continue
		}
		raw, err := json.Marshal(decision)
		if err != nil {
			return nil, err
		}
		given[c.of.question] = raw
	}
	t.showApprovals()
	t.timeApprovals()
	return given, nil
}

// count takes a reply in.
func (t *memoryThread) count(c counted) (approval.Decision, bool) {
	p := c.of
	standing, lapsed := c.ruling.Standing(p.votes)
	for _, v := range lapsed {
		t.audit.note(v.Lapsed(p.question, p.action))
	}
	votes := append(standing, c.vote)
	t.approvals.useToken(c.vote.Token)
	p.need = max(p.need, c.ruling.Need)
	d, decided := p.action.Decide(p.question, votes, p.need, c.ruling.Params)
	if decided {
		t.settleApproval(p, c.vote.By)
	} else {
		p.votes = votes
	}
	t.audit.note(trail.Voted(p.question, p.action, c.vote, decided))
	return d, decided
}

// settleApproval notes that nobody need answer any more.
func (t *memoryThread) settleApproval(p *memoryApproval, by string) {
	a := &t.approvals
	a.pending = slices.DeleteFunc(slices.Clone(a.pending), func(q *memoryApproval) bool { return q == p })
	if a.answered == nil {
		a.answered = map[string]string{}
	}
	a.answered[p.question] = by
}
