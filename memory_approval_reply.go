package superstep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// gateTimeout bounds one question to a gate: so long others wait to answer.
const gateTimeout = 10 * time.Second

// reply has a reply checked. One that does not count is noted.
func (t *memoryThread) reply(ctx context.Context, m *Memory, g *graphadapter.Graph, p *memoryApproval, raw pregel.Value, a answers) (counted, error) {
	reply, err := approval.ParseReply(json.RawMessage(raw))
	if err != nil {
		return counted{}, badAnswer(t.graph, t.id, p.question, err)
	}
	check := g.Knowing(approval.ReplyCheck{Thread: t.id, Graph: t.graph, Node: p.node, Question: p.question,
		Action: p.action, Asked: p.asked, Token: a.tokens[p.question], By: a.by, Reply: reply, Votes: p.votes})
	ruling := t.ungated(p, check)
	if m.gate != nil {
		ctx, cancel := context.WithTimeout(ctx, gateTimeout)
		defer cancel()
		if ruling, err = m.gate.Reply(ctx, check); err != nil {
			return counted{}, err
		}
		if ruling.Allowed && t.approvals.used[ruling.Token] {
			ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeUsed, "the token was used before: a token counts once"
		}
	}
	if !ruling.Allowed {
		t.audit.refuse(trail.Refused(p.question, ruling))
		return counted{}, notAllowed(t.graph, t.id, p.question, ruling)
	}
	return counted{of: p, ruling: ruling, vote: ruling.Vote(reply)}, nil
}

// ungated is the ruling where there is no gate: a reply counts for whoever it says, each of them once.
func (t *memoryThread) ungated(p *memoryApproval, c approval.ReplyCheck) approval.Ruling {
	by := c.By
	r := approval.Ruling{Allowed: true, By: by, Need: p.need, At: time.Now(), ValidFor: p.action.Validity(0)}
	standing, _ := r.Standing(p.votes)
	if slices.ContainsFunc(standing, func(v approval.Vote) bool { return v.By == by }) {
		r.Allowed, r.Code = false, approval.CodeAlreadyGiven
		r.Reason = fmt.Sprintf("%q has approved it: it takes %d different people", by, p.need)
	}
	var err error
	if r.Params, err = c.Proposed(); err != nil {
		r.Allowed, r.Code, r.Reason = false, approval.CodeMalformed, err.Error()
	}
	return r
}

// notAllowed refuses a reply to an approval.
func notAllowed(graph, thread, question string, r approval.Ruling) error {
	return &Error{Kind: ErrAnswerRefused, Graph: graph, Thread: thread, Question: question, Code: r.Code,
		Message: fmt.Sprintf("the answer to question %s of thread %q does not count: %s", question, thread, r.Reason)}
}

// alreadyAnswered refuses answers to approvals that were decided.
func (t *memoryThread) alreadyAnswered(question string) error {
	by, ok := t.approvals.answered[question]
	if !ok {
		return nil
	}
	if by == "" {
		by = "somebody else"
	}
	return &Error{Kind: ErrAnswerRefused, Graph: t.graph, Thread: t.id, Question: question,
		Message: fmt.Sprintf("question %s of thread %q was already answered by %s", question, t.id, by)}
}

// pastTheGate refuses input that answers approvals: their answers are checked where Resume takes them, and nowhere else.
func (t *memoryThread) pastTheGate(resume *pregel.Resume) error {
	for i, q := range t.open {
		if _, given := answerTo(resume, q.ID, i == 0); given && q.Approval != nil {
			return approvalPastGate(t.graph, t.id, q.ID)
		}
	}
	return nil
}

func approvalPastGate(graph, thread, question string) error {
	return &Error{Kind: ErrAnswerRefused, Graph: graph, Thread: thread, Question: question,
		Message: fmt.Sprintf("question %s of thread %q asks for an approval, which no input answers", question, thread),
		Do:      "Approve, reject or edit it", Command: []string{"resume", thread, question}}
}
