package superstep

import (
	"cmp"
	"encoding/json"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// ApprovalView is an action that waits for approval, as people see it: with its secrets hidden, in Before too.
type ApprovalView struct {
	approval.Action
	// Digest is what a token for the question is bound to, beside ParamsHash; see [approval.Claims].
	Digest string `json:"digest"`
	// Changes are what is different from the parameters that were asked about before, nil for the first question.
	Changes []approval.Change `json:"changes,omitempty"`
	// Asked are the people and groups who are asked now, none for whoever the policy allows.
	Asked []string `json:"asked,omitempty"`
	// Votes are the approvals that were given, of the Need that it takes.
	Votes []approval.Vote `json:"votes,omitempty"`
	Need  int             `json:"need"`
	// Due is when the time to answer is over, or was; zero for never.
	Due time.Time `json:"due,omitzero"`
	// Escalated says that it was over once, and that others are asked since.
	Escalated bool `json:"escalated,omitempty"`
	// Claimed names who is answering at this moment, as far as they said.
	Claimed string `json:"claimed,omitempty"`
}

// approvalView is the view of a question's action as it was asked about; nil for any other question.
func approvalView(q pregel.Question) *ApprovalView {
	var a approval.Action
	if q.Approval == nil || json.Unmarshal(q.Approval, &a) != nil {
		return nil
	}
	v := &ApprovalView{Digest: a.Digest(), Asked: a.Approvers, Need: a.Needs(0)}
	if b := a.Before; b != nil {
		if b.Params != nil {
			v.Changes, _ = approval.Diff(b.Params, a.Params, a.Secrets)
		}
		b.Params = approval.Masked(b.Params, a.Secrets)
	}
	a.Params = approval.Masked(a.Params, a.Secrets)
	v.Action = a
	return v
}

// addPending adds what a run knows of a question that asks for an approval.
func addPending(q Question, all []protocol.PendingApproval) {
	for _, p := range all {
		if p.Question == q.ID && q.Approval != nil {
			q.Approval.Asked, q.Approval.Votes, q.Approval.Need = p.Asked, p.Votes, p.Need
			q.Approval.Due, q.Approval.Escalated, q.Approval.Claimed = cmp.Or(p.Due, p.Missed), p.Escalated, p.Claimed
		}
	}
}

// questionView is a question as people see it.
func questionView(q pregel.Question, node string, step int) Question {
	return Question{ID: q.ID, Node: node, Step: step, Value: q.Value, Schema: q.Schema, Approval: approvalView(q)}
}
