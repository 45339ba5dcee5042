package taskrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strings"

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

// doubt records that a person has to decide, if that is not recorded yet.
func (c *effectCall) doubt(ctx context.Context, entry ledger.Entry) error {
	var found pregel.Value
	if c.receipt != nil && !pregel.IsNull(c.receipt) {
		found = c.receipt
	}
	doubted, err := entry.Doubt(c.reason, found)
	if err != nil {
		return c.failed("ask a person", err)
	}
	if c.recorded && c.entry.State == ledger.StateUnknown && c.entry.Evidence == c.reason &&
		c.entry.Rulings == doubted.Rulings && string(c.entry.Result) == string(found) {
		return nil
	}
	if err := c.record(ctx, doubted); err != nil {
		return c.failed("ask a person", err)
	}
	return nil
}

// doubtPrefix begins the keys of questions about effects.
const doubtPrefix = "effect/"

// IsDoubt reports whether a question is about what became of an execution, and none that a node asks.
func IsDoubt(q pregel.Question) bool {
	return strings.HasPrefix(q.Key, doubtPrefix) || q.Key == LostWorkersKey
}

// LostWorkersKey is the key of the question whether a task that keeps losing its workers is to run again.
const LostWorkersKey = "superstep.lost-workers"

// doubtKey is the key of the question about the effect that is open now, or would be asked next.
func (c *effectCall) doubtKey() string {
	return fmt.Sprintf("%s%s/%d", doubtPrefix, c.entry.Key, c.entry.Rulings)
}

func (c *effectCall) check(receipt pregel.Value) error {
	if c.effect.Check == nil {
		return nil
	}
	return c.effect.Check(c.entry.Params, receipt)
}

func (c *effectCall) do(ctx context.Context) (pregel.Value, error) {
	ctx, end := inCall(ctx, c.timeout, c.t.env.Lease)
	defer end()
	if err := ctx.Err(); err != nil { // the execution stood still before it came to this
		return nil, context.Cause(ctx)
	}
	receipt, err := c.effect.Do(ctx, c.entry.Key, c.entry.Params)
	if err != nil {
		return nil, late(ctx, c.timeout, err)
	}
	return receipt, nil
}

// confirm makes sure that the task was this execution's a moment ago. What a target does twice must not be asked by an
// execution that was frozen before it could tell the server anything.
func (c *effectCall) confirm(ctx context.Context) error {
	if c.t.env.Lease == nil || c.effect.Target == ledger.TargetKeyed {
		return nil
	}
	return c.t.env.Lease.Confirm(ctx)
}

// returned records that a call has come back, for an effect that tells calls that failed from calls that were lost. One
// of which this cannot be recorded counts as lost.
func (c *effectCall) returned(ctx context.Context) {
	if c.effect.AfterLoss == ledger.LossAsk {
		_ = c.record(ctx, c.entry.Return())
	}
}

// before is what is known of the executions before this one.
func (c *effectCall) before() ledger.Earlier {
	switch {
	case c.t.info.Lost, c.mayStillArrive:
		return ledger.EarlierLost
	case c.t.info.Suspect:
		return ledger.EarlierUncertain
	}
	return ledger.EarlierNone
}
