package taskrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bytes"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// gateTimeout bounds one question to a [UseGate].
const gateTimeout = 10 * time.Second

// approved reports whether the approval is one of what would be done now, and may be acted upon.
func (a *approving) approved(ctx context.Context, action approval.Action, d approval.Decision) (bool, error) {
	asked, known := a.asked(d.Question)
	if action.Digest() != d.Digest {
		changed := []string{"params"}
		if known {
			changed = changes(asked, action)
		} else if action.ParamsHash == d.ParamsHash {
			changed = []string{"action"}
		}
		if action.Drift == approval.DriftReplan || action.Drift == approval.DriftStop {
			return false, a.drifted(action, d, changed)
		}
		a.again(d.Question, asked.Params, changed)
		return false, nil
	}
	if later, asked := a.asked(a.question(a.round + 1)); asked {
		a.before = later.Before // it had drifted since, and what was decided then counts
		return false, nil
	}
	anew, err := a.use(ctx, action, d)
	if anew {
		a.again(d.Question, action.Params, []string{"approval"})
	}
	return !anew, err
}

// changes names what is different between two actions.
func changes(before, now approval.Action) (out []string) {
	note := func(name string, same bool) {
		if !same {
			out = append(out, name)
		}
	}
	note("tool", before.Tool == now.Tool)
	note("tool_version", before.ToolVersion == now.ToolVersion)
	note("summary", before.Summary == now.Summary)
	note("params", before.ParamsHash == now.ParamsHash)
	note("plan_version", before.PlanVersion == now.PlanVersion)
	note("key", before.Key == now.Key)
	note("requester", before.Requester == now.Requester)
	note("permissions", slices.Equal(before.Permissions, now.Permissions))
	names := maps.Clone(before.Watch)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, now.Watch)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := before.Watch[name]
		is, has := now.Watch[name]
		note("watch."+name, had == has && was == is)
	}
	return out
}

// use asks the gate, right before the approval is acted upon. anew says that the approval does not count any more, so that
// another is asked for.
func (a *approving) use(ctx context.Context, action approval.Action, d approval.Decision) (anew bool, err error) {
	d.Params = a.params
	i := a.t.info
	refused := &NotAllowedError{Graph: i.Graph, Node: i.Node, Thread: i.Thread, Question: d.Question, Tool: action.Tool,
		Code: approval.CodeUnavailable}
	if a.t.env.Use == nil {
		refused.Reason = "this worker checks no approvals: whoever runs it has to start it with --approval-keys FILE"
		return false, refused
	}
	asking, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	ruling, err := a.t.env.Use(asking, approval.UseCheck{Thread: i.Thread, Graph: i.Graph, Node: i.Node, Action: action, Decision: d})
	switch {
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		refused.Reason, refused.Err = "the gate cannot be asked", err
		return false, refused
	case ruling.Allowed:
		return false, nil
	}
	refused.Code, refused.Reason = ruling.Code, ruling.Reason
	if refused.Permanent() {
		err = a.recordRefusal(ctx, d, refused)
	}
	if err == nil && refused.Code.AsksAnew() {
		return true, nil
	}
	return false, errors.Join(refused, err)
}

// recordUse notes that an approval was acted upon.
func (a *approving) recordUse(ctx context.Context, d approval.Decision) error {
	return a.record(ctx, d, ledger.StateCommitted, approvedBy(d, ""), "")
}

// recordRefusal notes that an approval was refused right before it was to be acted upon.
func (a *approving) recordRefusal(ctx context.Context, d approval.Decision, why *NotAllowedError) error {
	by := approvedBy(d, "")
	by.Code = string(why.Code)
	return a.record(ctx, d, ledger.StateFailed, by, graphadapter.Bounded(why.Reason))
}

func (a *approving) record(ctx context.Context, d approval.Decision, state ledger.State, by *ledger.Approved, evidence string) error {
	key := a.entryKey(d.Question)
	e, known := a.t.journal.Entry(key)
	if known && e.State == state && e.Evidence == evidence && e.Approved != nil && *e.Approved == *by {
		return nil
	}
	if !known {
		e = ledger.Entry{Key: key, Kind: ledger.KindApproval, Attempts: 1}
	}
	e.State, e.Evidence, e.Approved = state, evidence, by
	if err := a.t.recordDone(ctx, e); err != nil {
		return fmt.Errorf("record what became of the approval %s: %w", d.Question, err)
	}
	return nil
}

// approvedBy is what a ledger keeps of a decision; proposed is the hash of the parameters that were proposed first.
func approvedBy(d approval.Decision, proposed string) *ledger.Approved {
	by := &ledger.Approved{Question: d.Question, Digest: d.Digest, Proposed: proposed}
	if n := len(d.Votes); n > 0 {
		last := d.Votes[n-1]
		by.By, by.Token, by.KeyID = last.By, last.Token, last.KeyID
	}
	return by
}

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
