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

// AuditState is what has to be known of a thread's audit to add to it. Whatever continues the thread is given it whole.
type AuditState struct {
	// Chain is the end of the audit.
	Chain approval.Chain `json:"chain"`
	// Done are the ids of what ledgers have told and the audit has, the latest [maxDone] of them: a ledger tells again what
	// it told before.
	Done []string `json:"done,omitempty"`
	// Asked says that the thread has asked for an approval: only then replies that are refused are noted.
	Asked bool `json:"asked,omitempty"`
}

// maxDone bounds the ids that are recognised when a ledger tells of them again.
const maxDone = 1000

// Trail adds to the audit of one thread. It is not safe for concurrent use.
type Trail struct {
	// State is continued; it must not be nil.
	State *AuditState
	// Thread is the thread's id.
	Thread string
	// Noted is told of each entry once it is part of the chain; nil tells nobody.
	Noted func(approval.Entry)

	refusals []*refusals
}

// Note adds an entry to the chain, as one of that time, and returns it as the chain has it. Its texts are cut as
// [approval.Chain.Append] says.
func (t *Trail) Note(at time.Time, e approval.Entry) approval.Entry {
	e.At, e.Thread = at, t.Thread
	if e.Kind == approval.KindAsked {
		t.State.Asked = true
	}
	e = t.State.Chain.Append(e)
	if t.Noted != nil {
		t.Noted(e)
	}
	return e
}

// The bounds of what is counted of refusals.
const (
	// maxRefusalKinds bounds the kinds of refusals that are counted apart.
	maxRefusalKinds = 50
	// refusalStep is by how much the refusals of a kind grow before they are an entry again.
	refusalStep = 9
)

// refusals count what was refused in one way. The first of them is an entry of its own; those that follow are entries of
// ten, a hundred, a thousand, so that a flood is a handful of entries.
type refusals struct {
	entry   approval.Entry
	written int // in entries
	more    int // not yet
}

// Refuse counts what was refused: e is an entry of the kind refused or denied, and count how often the same came. It is
// noted by [Trail.Flush]. A reply on a thread that asks for no approvals is not counted.
func (t *Trail) Refuse(e approval.Entry, count int) {
	if e.Kind == approval.KindRefused && !t.State.Asked {
		return
	}
	k := t.refusalsOf(e)
	k.entry.Reason, k.entry.Token, k.entry.KeyID, k.entry.Policy = e.Reason, e.Token, e.KeyID, e.Policy
	k.entry.Verdict, k.entry.ParamsHash = e.Verdict, e.ParamsHash
	k.more += count
}

// refusalsOf finds the count of the refusals of that kind. When there are too many kinds, persons and questions are not
// told apart.
func (t *Trail) refusalsOf(e approval.Entry) *refusals {
	if len(t.refusals) >= maxRefusalKinds {
		e.Question, e.Who, e.Claimed = "", "", ""
	}
	at := slices.IndexFunc(t.refusals, func(k *refusals) bool {
		return k.entry.Kind == e.Kind && k.entry.Question == e.Question && k.entry.Who == e.Who && k.entry.Code == e.Code &&
			k.entry.Op == e.Op && k.entry.Claimed == e.Claimed
	})
	if at < 0 {
		at = len(t.refusals)
		t.refusals = append(t.refusals, &refusals{entry: e})
	}
	return t.refusals[at]
}

// Flush makes entries of the refusals that are in none yet: of all, where the run ends or is continued as a new one, or
// of the kinds that are due.
func (t *Trail) Flush(at time.Time, all bool) {
	for _, k := range t.refusals {
		if k.more == 0 || !all && k.more < refusalStep*k.written {
			continue
		}
		e := k.entry
		if e.Count = k.more; k.more == 1 {
			e.Count = 0
		}
		k.written, k.more = k.written+k.more, 0
		t.Note(at, e)
	}
}

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

// RepeatedCall begins the reason of an entry about a write that was called again, with the number of the call.
const RepeatedCall = "call "

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
		e.Reason = fmt.Sprintf(RepeatedCall+"%d under its key, after the outside was asked", l.Attempts)
	}
	return e, true
}

// idOf is the same each time that a ledger tells the same of a write.
func idOf(l ledger.Entry) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d\n%s", l.Key, l.State, l.Attempts, l.Rulings, l.Evidence))
	return hex.EncodeToString(sum[:8])
}
