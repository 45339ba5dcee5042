package superstep

import (
	"context"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// proven returns who asks for that to be done to the thread: by a token that the gate allows, or as they say where rules ask
// for none. t.mu is held, so that nothing changes meanwhile. A refusal is in the audit.
func (t *memoryThread) proven(ctx context.Context, m *Memory, c approval.Control, a asker) (trail.Actor, error) {
	actor := trail.Actor{Claimed: a.by}
	if m.gate == nil || a.token == "" && !m.gate.Governs() {
		return actor, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	ruling, err := m.gate.Control(ctx, approval.ControlCheck{Thread: t.id, Graph: t.graph, Control: c, By: a.by, Token: a.token})
	if err != nil {
		return actor, err
	}
	if ruling.Allowed && ruling.Token != "" && t.approvals.used[ruling.Token] {
		ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeUsed, "the token was used before: a token counts once"
	}
	actor.Ruling = ruling
	if !ruling.Allowed {
		t.audit.refuse(trail.Denied(c.Op, actor))
		return actor, denied(t.graph, t.id, c.Op, ruling)
	}
	if ruling.Token != "" {
		t.approvals.useToken(ruling.Token)
	}
	return actor, nil
}

// denied refuses what the rules for control do.
func denied(graph, thread string, op approval.Op, r approval.Ruling) error {
	e := &Error{Kind: ErrAnswerRefused, Graph: graph, Thread: thread, Code: r.Code, Message: string(op) + " is not allowed: " + r.Reason}
	e.addCode()
	return e
}

// provenBegin is proven for what the thread goes on with; new input takes no proof.
func (t *memoryThread) provenBegin(ctx context.Context, m *Memory, b trail.Beginning, a asker) (trail.Actor, error) {
	ops := b.Ops(t.view.Status.Rests() || t.view.Status == StatusStopped)
	if len(ops) == 0 || t.done == nil && b.From == "" {
		return trail.Actor{Claimed: a.by}, nil
	}
	if len(ops) > 1 && m.gate.Governs() {
		return trail.Actor{}, t.refuse(ErrBadInput, "a token is for one thing, and this is to "+string(ops[0].Op)+" and to "+
			string(ops[1].Op)+": do one after the other")
	}
	return t.proven(ctx, m, ops[0], a)
}

// provenAnswers is proven for answers to what asks for no approval; approvals take tokens of their own.
func (t *memoryThread) provenAnswers(ctx context.Context, m *Memory, byID map[string]pregel.Value, a answers) (trail.Actor, error) {
	gated, on := 0, ""
	for id := range byID {
		if on = id; t.approvals.of(id) != nil {
			gated++
		}
	}
	switch {
	case gated == len(byID):
		return trail.Actor{}, nil
	case gated > 0 && m.gate.Governs():
		return trail.Actor{}, t.refuse(ErrBadInput, "who answers proves it, with a token for one question: answer what asks for no approval apart")
	case gated > 0:
		return trail.Actor{Claimed: a.by}, nil
	case len(byID) > 1:
		on = ""
	}
	return t.proven(ctx, m, approval.Control{Op: approval.OpResume, On: on}, asker{by: a.by, token: a.token})
}
