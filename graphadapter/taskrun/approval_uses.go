package taskrun

import (
	"bytes"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// ApprovalUse says what became of an approval when it was to be acted upon.
type ApprovalUse struct {
	ledger.Approved
	// ID is the same each time that the same use is told.
	ID string
	// Used says that it was acted upon; otherwise the gate refused that: Code, and in words Why.
	Used bool
	Why  string
	// ParamsHash is that of the parameters, in the form of approval.HashParams; "" when they are not kept.
	ParamsHash string
}

// ApprovalUses returns what a task's stored ledger tells of approvals, in its order.
func ApprovalUses(stored pregel.Value) ([]ApprovalUse, error) {
	if !bytes.Contains(stored, []byte(`"approved"`)) {
		return nil, nil // most ledgers are not worth being decoded
	}
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil, err
	}
	var uses []ApprovalUse
	for _, e := range entries {
		if e.Approved == nil {
			continue
		}
		u := ApprovalUse{Approved: *e.Approved, Used: true}
		if e.Kind == ledger.KindApproval && e.State == ledger.StateFailed {
			u.Used, u.Why = false, e.Evidence
		}
		if e.Kind == ledger.KindEffect && e.Params != nil {
			u.ParamsHash, _ = approval.HashParams(e.Params)
		}
		u.ID = ledger.Hash(e.Key, u.Question, u.Digest, u.Why)[:ledger.KeyLength]
		uses = append(uses, u)
	}
	return uses, nil
}
