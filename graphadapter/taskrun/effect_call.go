package taskrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// effectCall is one call of an effect on its way through the protocol.
type effectCall struct {
	t               *TaskRun
	effect          graphadapter.Effect
	timeout, settle time.Duration
	entry           ledger.Entry
	recorded        bool         // entry is in the journal
	proposed        pregel.Value // the node's parameters, and their hash: those approved may be others
	proposedHash    string

	// What the outside said last: the status, its receipt, how we came to ask, and what a person should know.
	finding  ledger.Finding
	receipt  pregel.Value
	evidence string
	reason   string

	// mayStillArrive says that a call with a thread-wide key may be under way that a run before this one began.
	mayStillArrive bool
}

var errNoThreadKey = graphadapter.Permanent(errors.New("a thread-wide key cannot be empty"))

func (c *effectCall) prepare(params pregel.Value, o graphadapter.CallOptions) (err error) {
	if o.ThreadWide && o.Key == "" {
		return errNoThreadKey
	}
	effect, ok := c.t.graph.Effects[c.entry.Name]
	if !ok || effect.Do == nil {
		return graphadapter.ErrNotRegistered
	}
	c.effect = c.t.env.Outside.effect(effect)
	if c.entry.Params, err = jsontext.Compact(params); err != nil {
		return fmt.Errorf("the parameters are not JSON: %w", err)
	}
	if c.entry.ParamsHash, err = graphadapter.ParamsHash(c.entry.Params); err != nil {
		return err
	}
	c.proposed, c.proposedHash = c.entry.Params, c.entry.ParamsHash
	if c.timeout <= 0 {
		c.timeout = graphadapter.DefaultCallTimeout
	}
	if c.settle == 0 {
		c.settle = graphadapter.DefaultSettleTime
	}
	c.settle = max(c.settle, 0)
	if wait := c.timeout + c.settle; wait != graphadapter.DefaultCallTimeout+graphadapter.DefaultSettleTime {
		c.entry.Settle = max(wait.Milliseconds(), 1) // for whoever undoes it: the node is gone by then
	}
	return nil
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
	if err := c.t.beginCall(); err != nil {
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

func (c *effectCall) commit(ctx context.Context, receipt pregel.Value, evidence string) error {
	entry, err := c.entry.Commit(receipt, evidence)
	if err == nil {
		err = c.t.recordDone(ctx, entry)
	}
	if err != nil {
		return c.failed("record the receipt", err)
	}
	c.entry, c.recorded = entry, true
	return nil
}

func (c *effectCall) record(ctx context.Context, entry ledger.Entry) error {
	if err := c.t.Journal().Record(ctx, entry); err != nil {
		return err
	}
	c.entry, c.recorded = entry, true
	return nil
}

// located adds to a conflict where it was met.
func (c *effectCall) located(err error) error {
	var conflict *ledger.ConflictError
	if !errors.As(err, &conflict) {
		return c.failed("compare with the ledger", err)
	}
	conflict.Graph, conflict.Node, conflict.Thread = c.t.info.Graph, c.t.info.Node, c.t.info.Thread
	return conflict
}

func (c *effectCall) failed(op string, err error) error {
	return &graphadapter.EffectError{
		Graph: c.t.info.Graph, Node: c.t.info.Node, Thread: c.t.info.Thread,
		Effect: c.entry.Name, Key: c.entry.Key, Op: op, Err: err,
	}
}
