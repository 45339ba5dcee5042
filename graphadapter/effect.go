package graphadapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Effect is a declared write to the outside, on JSON values. It is registered on its graph by name, because it is
// looked up, checked and compensated after its node is gone, perhaps in another process.
type Effect struct {
	// Name is unique in the graph and part of the key: a renamed effect is another one.
	Name string
	// Version is that of what Do does: an approval is one of a version.
	Version string
	// Target is what the outside guarantees about keys.
	Target ledger.Target
	// AfterLoss is what to do about a call that an execution was lost with and that the outside does not have. It matters for
	// TargetLookupOnly.
	AfterLoss ledger.Loss
	// Do makes the write. It must pass key on to the target, and should end when ctx does. A receipt means that the
	// write is there; after an error it may be.
	Do func(ctx context.Context, key string, params pregel.Value) (receipt pregel.Value, err error)
	// Lookup asks the target for the write of that key. Nil means that the target cannot be asked.
	Lookup func(ctx context.Context, key string, params pregel.Value) (Finding, error)
	// Check says whether a receipt is one for these parameters. Nil accepts every receipt.
	Check func(params, receipt pregel.Value) error
	// Compensate undoes the write. Nil means that it cannot be undone.
	Compensate func(ctx context.Context, key string, params, receipt pregel.Value) error
	// Approval says what has to be approved before a call with these parameters; false for nothing. It is asked about the
	// node's parameters and about those that somebody proposes instead: an error says that the effect cannot take them.
	// Tool, ToolVersion, Params, ParamsHash and Key of the action are set behind. Nil never asks.
	Approval func(params pregel.Value) (approval.Action, bool, error)
	// Canonical returns parameters as the effect writes those that it has read; its error says what does not fit, and holds
	// no value. Nil takes them as they are.
	Canonical func(params pregel.Value) (pregel.Value, error)
}

// Finding is what a Lookup found.
type Finding struct {
	// Status is FindingCommitted, FindingNotFound, FindingPartial or FindingUnknown; the empty status is taken as
	// FindingUnknown, never as "not found".
	Status ledger.Finding
	// Receipt is the receipt of a committed write, or what there is of a partial one.
	Receipt pregel.Value
	// Note is for people: what exactly is partial or unclear.
	Note string
}

// The default times of a call; see [CallOptions].
const (
	DefaultCallTimeout = 30 * time.Second
	DefaultSettleTime  = 5 * time.Second
)

// CallOptions shape one call of an effect.
type CallOptions struct {
	// Key replaces the ordinal in the effect's key: calls with the same key are the same call.
	Key string
	// ThreadWide makes Key one of the whole thread: calls with it are the same call in every task, superstep, branch and
	// run of the thread.
	ThreadWide bool
	// Timeout bounds one Do and one Lookup; 0 means [DefaultCallTimeout].
	Timeout time.Duration
	// Settle is how long after a call's end the target may take to show it in a Lookup; it matters for
	// TargetLookupOnly. 0 means [DefaultSettleTime], negative means none.
	Settle time.Duration
}

// ErrNotRegistered says that an effect was called that its graph does not declare.
var ErrNotRegistered = errors.New("the effect is not registered on the graph: add it with AddEffect, so that it can " +
	"be looked up after a crash")

func (e Effect) guarantee() ledger.Guarantee {
	return ledger.Guarantee{Target: e.Target, AfterLoss: e.AfterLoss}
}

// EffectError says which effect failed, where, and at what.
type EffectError struct {
	Graph, Node, Thread string
	// Effect and Key name the call; Op is what was being done: "call", "look up", "check the receipt".
	Effect, Key, Op string
	Err             error
}

func (e *EffectError) Error() string {
	return fmt.Sprintf("effect %q (key %s) of node %q, graph %q, thread %q: %s: %v",
		e.Effect, e.Key, e.Node, e.Graph, e.Thread, e.Op, e.Err)
}

// Unwrap returns what went wrong.
func (e *EffectError) Unwrap() error { return e.Err }

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
func (t *TaskRun) Effect(ctx context.Context, name string, params pregel.Value, o CallOptions) (pregel.Value, error) {
	c := &effectCall{t: t, timeout: o.Timeout, settle: o.Settle}
	c.entry = ledger.Entry{Name: name, Kind: ledger.KindEffect}
	if err := c.prepare(params, o); err != nil {
		return nil, c.failed("prepare", err)
	}
	if c.entry.ThreadWide = o.ThreadWide; o.ThreadWide {
		c.entry.Key = t.threadKey(c.entry.Kind, name, o.Key)
	} else {
		c.entry.Key = t.effectKeyFor(c.entry, o.Key)
	}
	receipt, err := c.once(ctx)
	if err != nil {
		t.unfinish(ledger.Entry{Name: name, Key: c.entry.Key, ParamsHash: c.proposedHash}, o.Key)
	}
	return receipt, err
}

// effectKeyFor returns the key of a call: that of the call which the node repeats, or the next one. A node that calls
// again with the same parameters after an error means the same write, and a new key would make it a second one.
func (t *TaskRun) effectKeyFor(e ledger.Entry, key string) string {
	if key == "" {
		t.countMu.Lock()
		repeated, ok := t.unfinished[hashOf(e.Name, e.ParamsHash)]
		delete(t.unfinished, hashOf(e.Name, e.ParamsHash))
		t.countMu.Unlock()
		if ok {
			return repeated
		}
	}
	return t.EffectKey(e.Name, key)
}

// unfinish notes a call that ended with an error.
func (t *TaskRun) unfinish(e ledger.Entry, key string) {
	if key != "" {
		return
	}
	t.countMu.Lock()
	defer t.countMu.Unlock()
	if t.unfinished == nil {
		t.unfinished = map[string]string{}
	}
	t.unfinished[hashOf(e.Name, e.ParamsHash)] = e.Key
}
