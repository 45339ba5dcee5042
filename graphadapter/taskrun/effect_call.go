package taskrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
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
	receipt, err := traced(ctx, c.t.attempt, c.traced(CallDo), func(ctx context.Context) (pregel.Value, error) {
		return c.effect.Do(ctx, c.entry.Key, c.entry.Params)
	})
	if err != nil {
		return nil, late(ctx, c.timeout, err)
	}
	return receipt, nil
}

// traced is a call of the effect as spans tell of it; none where there is nothing to call.
func (c *effectCall) traced(kind string) TracedCall {
	if kind == CallLookUp && c.effect.Lookup == nil {
		return TracedCall{}
	}
	return TracedCall{Kind: kind, Effect: c.effect.Name, Key: c.entry.Key}
}

// seekDuplicate asks the outside about a call that came back to an execution which had lost its task meanwhile, or which has called
// again for one that was lost. Either call may be the first to arrive: of a Lookup that tells the first write, whoever wrote second
// learns that there are two. A call that came back with an error and was made again is looked up too: that it wrote all the same is a
// duplicate as well. The node waits for it as long as for any lookup. A target that heeds the key has one write whatever happened.
func (c *effectCall) seekDuplicate(ctx context.Context, receipt pregel.Value) {
	env := c.t.env
	if env.Duplicate == nil || env.Lease == nil || c.effect.Target == ledger.TargetKeyed || c.effect.Lookup == nil {
		return
	}
	if alone := c.entry.Attempts <= 1 && env.Lease.Held() == nil; alone {
		return
	}
	f, err := lookUp(context.WithoutCancel(ctx), c.timeout, nil, &c.effect, &c.entry)
	if err == nil && f.Receipt != nil && !pregel.IsNull(f.Receipt) && !bytes.Equal(f.Receipt, receipt) {
		env.Duplicate(c.effect.Name)
	}
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
	if c.effect.OnLoss == ledger.LossAsk {
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

// lookUp asks the target and keeps what it says.
func (c *effectCall) lookUp(ctx context.Context) error {
	f, err := traced(ctx, c.t.attempt, c.traced(CallLookUp), func(ctx context.Context) (graphadapter.Finding, error) {
		return lookUp(ctx, c.timeout, c.t.env.Lease, &c.effect, &c.entry)
	})
	if err != nil {
		return c.failed("look up", err)
	}
	c.found(f)
	return nil
}

// lookUp asks the target of an effect about the write of an entry, no longer than a call may take. A receipt that does not
// fit is that of a partial write, and a target that says nothing says nothing clear.
func lookUp(ctx context.Context, most time.Duration, lease Lease, effect *graphadapter.Effect, of *ledger.Entry) (graphadapter.Finding, error) {
	if effect.Lookup == nil {
		return graphadapter.Finding{Status: ledger.FindingUnknown, Note: "the effect has no Lookup"}, nil
	}
	key, params := of.Key, of.Params // the entry may change while a call that does not end is left behind
	f, err := inTime(ctx, most, lease, func(ctx context.Context) (graphadapter.Finding, error) {
		return effect.Lookup(ctx, key, params)
	})
	if err != nil {
		return f, err
	}
	if f.Receipt, err = jsontext.Compact(f.Receipt); err != nil {
		return f, fmt.Errorf("the receipt is not JSON: %w", err)
	}
	if f.Status == ledger.FindingCommitted && effect.Check != nil {
		if err := effect.Check(of.Params, f.Receipt); err != nil {
			f.Status, f.Note = ledger.FindingPartial, "the receipt that was found does not fit: "+err.Error()
		}
	}
	if f.Status == ledger.FindingNone {
		f.Status = ledger.FindingUnknown
	}
	return f, nil
}

// lookUpSettled looks up again once no earlier call can still be under way unseen.
func (c *effectCall) lookUpSettled(ctx context.Context) error {
	wait := c.timeout + c.settle
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return c.failed("wait for an earlier call", fmt.Errorf("an earlier call may need %v to show (call timeout plus "+
			"settle time), but the attempt ends before: raise the node's run timeout above that", wait))
	}
	defer c.t.idle.hold()()
	if err := c.t.env.Outside.wait(ctx, wait); err != nil {
		return err
	}
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	if c.finding == ledger.FindingNotFound {
		c.finding = ledger.FindingStillNotFound
	}
	return nil
}

func (c *effectCall) found(f graphadapter.Finding) {
	c.finding, c.receipt, c.reason = f.Status, f.Receipt, f.Note
}

// probe asks the target before the first call with a thread-wide key: another task of the thread may have called, in a
// run that was terminated before the thread heard of it. Shortly after such a run its call may still be under way, so what
// is not found goes by the target's guarantee; otherwise the call is made as one that nobody made before.
func (c *effectCall) probe(ctx context.Context) error {
	if !c.entry.ThreadWide || c.recorded || c.t.info.Suspect || c.effect.Lookup == nil {
		return nil
	}
	c.evidence = "lookup before the first call"
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	if c.finding == ledger.FindingNotFound {
		if c.mayStillArrive = c.mayArrive(); !c.mayStillArrive {
			c.finding = ledger.FindingNone
		}
	}
	return nil
}

// longestLease is how long a worker may take to notice that its run is over: the lease of a task in the widest fan-out.
const longestLease = 4 * time.Second

// mayArrive reports whether a call of a run that ended before this one, and ended badly, may not have arrived yet.
func (c *effectCall) mayArrive() bool {
	behind := c.t.env.Behind
	return behind > 0 && behind < longestLease+c.timeout+c.settle
}

// recover gets the receipt of a committed effect again, which was too large to be kept: from the target, or from a
// person. It is not recorded again.
func (c *effectCall) recover(ctx context.Context) error {
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	if c.finding == ledger.FindingCommitted {
		c.entry.Result = jsontext.OrNull(c.receipt)
		return nil
	}
	c.reason = strings.TrimSpace(fmt.Sprintf("it did, but its receipt of %d bytes was too large to be kept, and the target "+
		"does not show it. %s", c.entry.Left, c.reason))
	r, by, err := c.ruling(ctx)
	if err != nil {
		return err
	}
	if r.Action != rulingDone || pregel.IsNull(jsontext.OrNull(r.Receipt)) {
		return c.failed("get the receipt again", graphadapter.Permanent(fmt.Errorf("%s gave none, and the outside has the write", by)))
	}
	if err := c.check(r.Receipt); err != nil {
		return c.failed("get the receipt again", graphadapter.Permanent(fmt.Errorf("the receipt given by %s does not fit: %w", by, err)))
	}
	c.entry.Result = r.Receipt
	return nil
}
