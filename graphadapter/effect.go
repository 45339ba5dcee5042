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
	// OnLoss is what to do about a call that an execution was lost with and that the outside does not have. It matters for
	// TargetLookupOnly.
	OnLoss ledger.Loss
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
	// About numbers the call among those about the same thing, whatever calls about others come between; "" numbers it among all calls of the
	// effect. It matters without a Key.
	About string
	// Content is a digest of what the call writes beside its parameters: after an error a call with the same parameters and content is the same
	// one.
	Content string
	// Timeout bounds one Do and one Lookup; 0 means [DefaultCallTimeout].
	Timeout time.Duration
	// Settle is how long after a call's end the target may take to show it in a Lookup; it matters for
	// TargetLookupOnly. 0 means [DefaultSettleTime], negative means none.
	Settle time.Duration
}

// ErrNotRegistered says that an effect was called that its graph does not declare.
var ErrNotRegistered = errors.New("the effect is not registered on the graph: add it with AddEffect, so that it can " +
	"be looked up after a crash")

// Guarantee is what the effect's target promises, as [ledger.Decide] takes it.
func (e Effect) Guarantee() ledger.Guarantee {
	return ledger.Guarantee{Target: e.Target, OnLoss: e.OnLoss}
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

// Masked hides the parameters that nobody is shown when the call asks for an approval. It hides all of them when Approval
// does not say which: the parameters do not fit any more, or it panics.
func (e *Effect) Masked(params pregel.Value) pregel.Value {
	if e.Approval == nil || params == nil {
		return params
	}
	action, err := e.wouldAsk(params)
	if err != nil {
		return HiddenParams
	}
	return approval.Masked(params, action.Secrets)
}

// wouldAsk returns the action that Approval makes of parameters.
func (e *Effect) wouldAsk(params pregel.Value) (action approval.Action, err error) {
	defer Catch(&err)
	action, _, err = e.Approval(params)
	return action, err
}

// HiddenParams are parameters of which nobody knows what is to be hidden.
var HiddenParams = pregel.Value(`"` + approval.Hidden + `"`)
