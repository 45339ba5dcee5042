package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// maxUses bounds the uses that a run recognises when a task tells of them again.
const maxUses = 1000

// auditUses notes what became of approvals that tasks were given: their ledgers tell.
func (r *run) auditUses(ctx workflow.Context, e pregel.Event) {
	if e.Kind != pregel.EventLedger {
		return
	}
	uses, err := graphadapter.ApprovalUses(e.Value)
	if err != nil {
		return // its task cannot go on with it either, and says so
	}
	for _, u := range uses {
		if slices.Contains(r.approvals.Done, u.ID) {
			continue
		}
		r.approvals.Done = latest(append(slices.Clip(r.approvals.Done), u.ID), maxUses)
		entry := approval.Entry{Kind: approval.KindUsed, Question: u.Question, Who: u.By, Token: u.Token, KeyID: u.KeyID, ParamsHash: u.ParamsHash,
			Code: approval.Code(u.Code), Reason: u.Why}
		if !u.Used {
			entry.Kind = approval.KindNotUsed
		}
		r.audit(ctx, entry)
	}
}
