package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// Effect calls the registered effect of that name once for this task, whatever crashes, and returns its receipt.
//
// A recorded receipt is returned without a call. If an earlier execution may have called, the target is asked first,
// and ledger.Decide says how to go on. A call is made only after its intent is durable, with a deadline inside the
// lease, and its receipt is checked and made durable before Effect returns. When only a person can tell, the task asks
// one and Effect returns [ErrInterrupted].
//
// An error from Do or Lookup comes back in an [*EffectError]; the intent stays recorded, so the next execution looks
// up before it calls, and so does a second call with the same parameters in this one. The exception is a [Permanent]
// error from a keyed target that, asked, has nothing under the key: that is recorded as failed.
func (t *TaskRun) Effect(ctx context.Context, name string, params pregel.Value, o graphadapter.CallOptions) (pregel.Value, error) {
	c := &effectCall{t: t, timeout: o.Timeout, settle: o.Settle}
	c.entry = ledger.Entry{Name: name, Kind: ledger.KindEffect, Within: t.outer != nil}
	if err := c.prepare(params, o); err != nil {
		return nil, c.failed("prepare", err)
	}
	if c.entry.ThreadWide = o.ThreadWide; o.ThreadWide {
		c.entry.Key = t.threadKey(c.entry.Kind, name, o.Key)
	} else {
		c.entry.Key = t.effectKeyFor(c.entry, o)
	}
	receipt, err := c.once(ctx)
	if err != nil {
		t.unfinish(ledger.Entry{Name: name, Key: c.entry.Key, ParamsHash: c.proposedHash}, o)
	}
	return receipt, err
}

// effectKeyFor returns the key of a call: that of the call which the node repeats, or the next one. A node that calls
// again with the same parameters after an error means the same write, and a new key would make it a second one.
func (t *TaskRun) effectKeyFor(e ledger.Entry, o graphadapter.CallOptions) string {
	if o.Key == "" {
		same := ledger.Hash(e.Name, e.ParamsHash, o.Content)
		t.countMu.Lock()
		repeated, ok := t.unfinished[same]
		delete(t.unfinished, same)
		t.countMu.Unlock()
		if ok {
			return repeated
		}
	}
	return t.callKey(ledger.KindEffect, e.Name, o.Key, o.About)
}

// unfinish notes a call that ended with an error.
func (t *TaskRun) unfinish(e ledger.Entry, o graphadapter.CallOptions) {
	if o.Key != "" {
		return
	}
	t.countMu.Lock()
	defer t.countMu.Unlock()
	if t.unfinished == nil {
		t.unfinished = map[string]string{}
	}
	t.unfinished[ledger.Hash(e.Name, e.ParamsHash, o.Content)] = e.Key
}

// once is Effect for the calls of one key, one at a time.
func (c *effectCall) once(ctx context.Context) (pregel.Value, error) {
	unlock, err := c.t.lock(ctx, c.entry.Key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c.entry.ThreadWide {
		if err := c.t.own(c.entry.Key); err != nil {
			return nil, err
		}
	}
	if err := c.t.begin(ctx); err != nil {
		return nil, err
	}
	defer c.t.endCall()
	if recorded, ok := c.t.journal.Entry(c.entry.Key); ok {
		if recorded.State == ledger.StateCompensated && !recorded.Reported {
			return nil, c.failed("call", undoneError(recorded.Evidence))
		}
		if recorded.State == ledger.StateCompensated {
			c.entry.Key = keyBehind(recorded.Key)
			return c.once(ctx)
		}
		if err := recorded.SameParams(c.entry.ParamsHash); err != nil {
			return nil, c.located(err)
		}
		if recorded.Params == nil {
			recorded.Params = c.approvedParams(recorded)
		}
		c.entry, c.recorded = recorded, true
	}
	return c.run(ctx)
}

// run follows the table until there is a receipt, an error, or an open question.
func (c *effectCall) run(ctx context.Context) (pregel.Value, error) {
	if by, ruled := c.undoRuled(); ruled {
		if err := c.undo(ctx, by); err != nil {
			return nil, err
		}
	}
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	for {
		var recorded *ledger.Entry
		if c.recorded {
			recorded = &c.entry
		}
		if by, stops := c.stopRuled(); stops && c.finding != ledger.FindingNone {
			return nil, c.stop(ctx, by)
		}
		var err error
		switch ledger.Decide(c.effect.Guarantee(), recorded, c.before(), c.finding) {
		case ledger.ActionUse:
			if c.entry.Result != nil {
				return c.entry.Result, nil
			}
			err = c.recover(ctx)
		case ledger.ActionLookUp:
			c.evidence = "lookup after crash"
			if err = c.lookUp(ctx); err != nil {
				err = errors.Join(err, c.unseen(ctx, err))
			}
		case ledger.ActionWaitSettle:
			err = c.lookUpSettled(ctx)
		case ledger.ActionAccept:
			err = c.commit(ctx, c.receipt, c.evidence)
		case ledger.ActionCall:
			err = c.call(ctx)
		default:
			err = c.askPerson(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// call records the intent of a call that is approved, makes it and records the receipt.
func (c *effectCall) call(ctx context.Context) error {
	if err := c.approve(ctx); err != nil {
		return err
	}
	entry, err := c.entry.Send()
	if err != nil {
		return c.failed("call", err)
	}
	if err := c.record(ctx, entry); err != nil {
		return c.failed("record the intent (nothing was called)", err)
	}
	if err := c.confirm(ctx); err != nil {
		c.returned(ctx)
		return c.failed("confirm that the task is still this worker's (nothing was called)", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	receipt, err := c.do(ctx)
	if err != nil {
		c.returned(ctx)
		return c.unanswered(ctx, c.failed("call", err))
	}
	if receipt, err = jsontext.Compact(receipt); err != nil {
		return c.failed("call", fmt.Errorf("the receipt is not JSON: %w", err))
	}
	c.seekDuplicate(ctx, receipt)
	if err := c.check(receipt); err != nil {
		c.found(graphadapter.Finding{Status: ledger.FindingPartial, Receipt: receipt, Note: "the receipt of the call does not fit: " + err.Error()})
		return nil
	}
	return c.commit(ctx, receipt, "")
}

// unanswered decides what an error of Do leaves in the journal. Do may have failed before or after the target wrote,
// so the intent stays; only the target's own word takes it away.
func (c *effectCall) unanswered(ctx context.Context, failure error) error {
	if !graphadapter.IsPermanent(failure) || c.effect.Target != ledger.TargetKeyed || c.effect.Lookup == nil {
		return failure
	}
	c.evidence = "lookup after a final error"
	if err := c.lookUp(ctx); err != nil {
		return errors.Join(failure, err)
	}
	switch c.finding {
	case ledger.FindingCommitted:
		return nil // it is there all the same: accept it
	case ledger.FindingNotFound:
		entry, err := c.entry.Refuse(graphadapter.Bounded(failure.Error()))
		if err == nil {
			err = c.t.recordDone(ctx, entry)
		}
		return errors.Join(failure, err)
	}
	return failure
}

// approve returns when the call may be made, with the parameters that were approved. It is asked right before each call,
// so never about an effect that the outside has, and about one that it may have only once it was looked up.
func (c *effectCall) approve(ctx context.Context) error {
	if c.effect.Approval == nil {
		return nil
	}
	first, needed, err := c.effect.Approval(c.proposed)
	if err != nil {
		return c.failed("ask for approval", graphadapter.Permanent(err))
	}
	if !needed {
		return nil
	}
	asks := &approving{t: c.t, key: "approve/effect/" + c.entry.Key, canonical: c.effect.Canonical, with: func(params pregel.Value) (approval.Action, error) {
		return c.action(first, params)
	}}
	d, err := asks.decide(ctx)
	if err != nil {
		return err
	}
	if err := c.t.Rejected(c.effect.Name, d); err != nil {
		return err
	}
	return c.approved(d)
}

// action is the call as people are asked about it: with the parameters that somebody proposed, nil for the node's own.
// Since they may change who has to approve, the effect is asked about them.
func (c *effectCall) action(first approval.Action, params pregel.Value) (approval.Action, error) {
	a := first
	if params != nil {
		edited, needed, err := c.effect.Approval(params)
		if err != nil {
			return a, err
		}
		if needed {
			a = edited
		}
	}
	a.Tool, a.ToolVersion, a.Key, a.Params = c.effect.Name, c.effect.Version, c.entry.Key, c.proposed
	if params != nil {
		a.Params = params
	}
	return a, nil
}

// approved makes the call one with the parameters that were approved. Under a key that may have been sent there is only
// one write: other parameters would be another.
func (c *effectCall) approved(d approval.Decision) error {
	params, hash := c.proposed, c.proposedHash
	if d.Params != nil {
		var err error
		params = d.Params
		if hash, err = graphadapter.ParamsHash(params); err != nil {
			return c.failed("ask for approval", graphadapter.Permanent(err))
		}
	}
	if c.entry.Attempts > 0 && c.entry.ParamsHash != hash {
		return c.located(&ledger.ConflictError{Name: c.entry.Name, Key: c.entry.Key, Recorded: c.entry.ParamsHash, Got: hash})
	}
	c.entry.Params, c.entry.ParamsHash, c.entry.Approved = params, hash, approvedBy(d, c.proposedHash)
	return nil
}

// approvedParams returns the parameters of a recorded call that were too large to be stored with it: the node's own, or
// those that somebody proposed instead, which the answer has.
func (c *effectCall) approvedParams(recorded ledger.Entry) pregel.Value {
	if recorded.ParamsHash == c.proposedHash {
		return c.proposed
	}
	for _, answer := range c.t.answers {
		var d approval.Decision
		if json.Unmarshal(answer.Value, &d) != nil || d.Verdict != approval.VerdictEdit {
			continue
		}
		params, err := jsontext.OrNull(d.Params), error(nil)
		if c.effect.Canonical != nil {
			params, err = c.effect.Canonical(params)
		}
		if err != nil {
			continue
		}
		if hash, err := graphadapter.ParamsHash(params); err == nil && hash == recorded.ParamsHash {
			return params
		}
	}
	return nil // of another task: looking the write up then fails, and says that it cannot read them
}
