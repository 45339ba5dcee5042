package life

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// Happened notes what a task's ledger tells: what became of approvals, and of writes that were not made by one call. What
// it told before is no news. A ledger that cannot be read tells nothing: its task cannot go on with it either, and says so.
func (t *Trail) Happened(at time.Time, e pregel.Event) {
	if e.Kind != pregel.EventLedger || e.Task == nil {
		return
	}
	uses, err := taskrun.ApprovalUses(e.Value)
	if err != nil {
		return
	}
	for _, u := range uses {
		t.once(at, u.ID, used(u))
	}
	if !worthReading(e.Value) {
		return
	}
	entries, err := graphadapter.DecodeLedger(e.Value)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if known, ok := reconciled(e.Task.Node, entry); ok {
			t.once(at, idOf(entry), known)
		}
	}
}

// once notes what ledgers tell more than once.
func (t *Trail) once(at time.Time, id string, e approval.Entry) {
	if slices.Contains(t.State.Done, id) {
		return
	}
	done := append(slices.Clip(t.State.Done), id)
	if len(done) > maxDone {
		done = slices.Clone(done[len(done)-maxDone:])
	}
	t.State.Done = done
	t.Note(at, e)
}

// used says what became of an approval.
func used(u taskrun.ApprovalUse) approval.Entry {
	e := approval.Entry{Kind: approval.KindUsed, Question: u.Question, Who: u.By, Token: u.Token, KeyID: u.KeyID, ParamsHash: u.ParamsHash,
		Code: approval.Code(u.Code), Reason: u.Why}
	if !u.Used {
		e.Kind = approval.KindNotUsed
	}
	return e
}

// The marks of a ledger that has something to tell. Most have none, and are not worth being decoded.
var (
	evidenceMark = []byte(`"evidence":`)
	attemptsMark = []byte(`"attempts":`)
)

// worthReading reports whether a stored ledger may hold a write that was not made by one call alone.
func worthReading(stored pregel.Value) bool {
	if bytes.Contains(stored, evidenceMark) {
		return true
	}
	for rest := []byte(stored); ; {
		_, behind, found := bytes.Cut(rest, attemptsMark)
		if !found {
			return false
		}
		if len(behind) > 1 && (behind[0] > '1' || behind[1] >= '0' && behind[1] <= '9') {
			return true
		}
		rest = behind
	}
}

// reconciled says what is known of a write, if that is not just that one call was made and had its receipt.
func reconciled(node string, l ledger.Entry) (approval.Entry, bool) {
	e := approval.Entry{Kind: approval.KindReconciled, Node: node, Effect: l.Name, EffectKey: l.Key, State: string(l.State), Reason: l.Evidence}
	switch {
	case l.Kind != ledger.KindEffect, l.State == ledger.StateIntent:
		return e, false
	case l.State == ledger.StateUnknown:
		e.Kind = approval.KindUnclear
	case l.Evidence == "" && l.Attempts <= 1:
		return e, false
	case l.Evidence == "":
		e.Reason = fmt.Sprintf("call %d under its key, after the outside was asked", l.Attempts)
	}
	return e, true
}

// idOf is the same each time that a ledger tells the same of a write.
func idOf(l ledger.Entry) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d\n%s", l.Key, l.State, l.Attempts, l.Rulings, l.Evidence))
	return hex.EncodeToString(sum[:8])
}
