package superstep

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/guard"
	"superstep.dev/internal/jsonfit"
)

// EffectTarget is what the outside guarantees about the key of an [Effect].
type EffectTarget = ledger.Target

const (
	// TargetKeyed: the target makes a second call with the same key a no-op, as an idempotency key does. When it has
	// nothing under the key, the call is made again with the same key.
	TargetKeyed = ledger.TargetKeyed
	// TargetLookupOnly: the target stores the key and finds it again, but does not refuse a second call with it. After
	// a crash "not found" is believed only when an earlier call can no longer be under way: after the call timeout
	// plus the settle time.
	TargetLookupOnly = ledger.TargetLookupOnly
	// TargetNone: neither. After a crash a person decides.
	TargetNone = ledger.TargetNone
)

// OnLoss is what an [Effect] wants done when a worker was lost with a call of it, and the target does not have the write.
type OnLoss = ledger.Loss

const (
	// OnLossRepeat: what Target says. It is the zero value.
	OnLossRepeat = ledger.LossRepeat
	// OnLossAsk: a person decides. A worker that is lost may be frozen and go on when it thaws, with a call that nothing
	// stops which does not go through a [GuardedTransport]. A call that failed is no lost one.
	OnLossAsk = ledger.LossAsk
)

// FindingStatus is what an [Effect]'s Lookup found.
type FindingStatus = ledger.Finding

const (
	// FindingUnknown: no clear answer. It is the zero value's meaning, and a person decides.
	FindingUnknown = ledger.FindingUnknown
	// FindingCommitted: the target has the write; Receipt is its receipt.
	FindingCommitted = ledger.FindingCommitted
	// FindingNotFound: the target has nothing under the key.
	FindingNotFound = ledger.FindingNotFound
	// FindingPartial: the target has something under the key, but not all of the write. A person decides.
	FindingPartial = ledger.FindingPartial
)

// Finding is what a Lookup found.
type Finding[R any] struct {
	Status FindingStatus
	// Receipt is the receipt of a committed write, or what there is of a partial one.
	Receipt R
	// Note tells a person what is partial or unclear.
	Note string
}

// Effect is a declared write to the outside: parameters P, receipt R, both of which encode as JSON. Declare it as a
// value, register it with AddEffect on the graph whose nodes call it, and do not change it afterwards.
//
// The functions are given what was recorded, decoded again, because they may run in another process than the call.
type Effect[P, R any] struct {
	// Name is unique in the graph and part of stored data.
	Name string
	// Version is that of what Do does, at most 200 bytes; "" for none. An approval is one of a version: after a change that
	// approvers should know of, give it another.
	Version string
	// Target is what the outside guarantees; it has to be stated.
	Target EffectTarget
	// OnLoss is for TargetLookupOnly: whether a person is asked after a worker was lost with a call, when the target, asked
	// again after the call timeout and the settle time, still does not have it. It is also about undoing.
	OnLoss OnLoss
	// Do makes the write. It has to hand key to the target, and to give ctx to what sends: over HTTP a client with a
	// [GuardedTransport]; else ask [CheckCall] right before. A receipt says that the write is there.
	// After an error it may be there or not, and is looked up before anything else; wrap an error in [Permanent] when
	// repeating the call is pointless.
	Do func(ctx context.Context, key string, p P) (R, error)
	// Lookup asks the target for the write of that key. Without it a person decides after a crash; TargetLookupOnly
	// needs it. An error means that the target did not answer, and is retried.
	Lookup func(ctx context.Context, key string, p P) (Finding[R], error)
	// Check returns an error when a receipt is not one for these parameters. It is asked about every receipt, of a
	// call or a lookup. Nil accepts all.
	Check func(p P, receipt R) error
	// Compensate undoes the write, when a run is cancelled with CancelCompensate. It is an effect of its own: key follows
	// from the write's, is the same each time, and has to be handed to the target, which must treat a second call with it
	// as Target says of Do. After a crash or an error Lookup is asked first, with the write's own key: a write that it does
	// not find is undone. Nil means that the write cannot be undone; then a person is asked.
	Compensate func(ctx context.Context, key string, p P, receipt R) error
	// Approval says what people have to approve before a call with these parameters, and false that nobody need be asked.
	// Tool, ToolVersion, Params and Key of the action are set to the effect's. It is also asked about parameters that an
	// approver proposes instead, which need an approval in any case; those that do not fit P are asked about no further.
	// It must be a function of p alone. See [Approve] for what an approval is. Nil never asks.
	Approval func(p P) (approval.Action, bool)
}

// AnyEffect is an [*Effect] of any type.
type AnyEffect interface {
	effectName() string
	// problem says what is wrong with the declaration.
	problem() error
	// adapter returns the effect on JSON values; there must be no problem.
	adapter() graphadapter.Effect
}

// WithCallTimeout bounds one Do and one Lookup; the default is 30 s. Another worker waits that long, and the settle time,
// before it believes that a call which it does not find was not made. On Temporal the call's context also ends when another
// worker may have taken the task over.
func WithCallTimeout(d time.Duration) CallOption {
	return callOption{"WithCallTimeout", func(o *callOptions) { o.Timeout = d }}
}

// WithSettleTime says how long after a call the target may take to show it in a Lookup; the default is 5 s, negative
// means none. It matters for [TargetLookupOnly].
func WithSettleTime(d time.Duration) CallOption {
	return callOption{"WithSettleTime", func(o *callOptions) { o.Settle = d }}
}

// Call makes the write once for this task and returns its receipt, whatever crashes in between. When an earlier
// execution of the task has the receipt, it is returned without a call; when one may have called, the target is asked
// first. Call fails with
//   - [ErrOutsideNode] when ctx is not a node's;
//   - [ErrInterrupted] when only a person can tell what happened: return it, the task waits for the answer;
//   - [ErrYielded] when the task is to begin again with what it has recorded: return it;
//   - a [*ConflictError] when the key was recorded with other parameters;
//   - a [*RejectedError], [*DriftError] or [*NotAllowedError] when it needs an approval and has none that counts;
//   - an error that names the effect, its key, node, graph and thread for everything else, wrapping what Do or Lookup
//     returned. Return it: the node's retry policy decides, and the next attempt looks up before it calls.
//
// With an Approval, Call asks right before it would call: never about a write that the target has, and about one that may
// have been sent only once it was looked up. What is sent and recorded is what was approved, other parameters that an
// approver proposed included.
//
// A call is known by its order among the node's calls of this effect, by [WithKey] or by [WithThreadKey]. Parameters have to be the same
// each time: compute them from the state or in a [Task], never from a clock or random numbers.
func (e *Effect[P, R]) Call(ctx context.Context, p P, opts ...CallOption) (R, error) {
	var receipt R
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return receipt, fmt.Errorf("effect %q: %w", e.Name, ErrOutsideNode)
	}
	o, err := callOptionsOf(opts, "WithThreadKey", "WithCallTimeout", "WithSettleTime")
	if err != nil {
		return receipt, fmt.Errorf("effect %q: %w", e.Name, err)
	}
	params, err := jsonfit.Encode(p)
	if err != nil {
		return receipt, recordError(t, "effect", e.Name, reflect.TypeFor[P](), true, err)
	}
	raw, err := t.Effect(ctx, e.Name, params, o.CallOptions)
	if err != nil {
		return receipt, answerError(err)
	}
	if err := jsonfit.Decode(raw, &receipt); err != nil {
		return receipt, recordError(t, "effect", e.Name, reflect.TypeFor[R](), false, err)
	}
	return receipt, nil
}

func (e *Effect[P, R]) effectName() string {
	if e == nil {
		return ""
	}
	return e.Name
}

func (e *Effect[P, R]) problem() error {
	switch {
	case e == nil:
		return errors.New("the effect is nil")
	case e.Name == "":
		return errors.New("the effect has no Name")
	case e.Do == nil:
		return fmt.Errorf("effect %q has no Do", e.Name)
	case !e.Target.Valid():
		return fmt.Errorf("effect %q does not say what its Target guarantees: superstep.TargetKeyed, TargetLookupOnly "+
			"or TargetNone", e.Name)
	case len(e.Version) > approval.MaxName:
		return fmt.Errorf("the Version of effect %q has %d bytes, the most is %d", e.Name, len(e.Version), approval.MaxName)
	case e.Target == TargetLookupOnly && e.Lookup == nil:
		return fmt.Errorf("effect %q has TargetLookupOnly but no Lookup", e.Name)
	case !e.OnLoss.Valid():
		return fmt.Errorf("the OnLoss of effect %q is %q: superstep.OnLossRepeat or OnLossAsk", e.Name, e.OnLoss)
	case e.OnLoss != OnLossRepeat && e.Target != TargetLookupOnly:
		return fmt.Errorf("effect %q has an OnLoss, which is for TargetLookupOnly: a target that is keyed makes a second call "+
			"a no-op, and about any other a person is asked in any case", e.Name)
	}
	return nil
}

func (e *Effect[P, R]) adapter() graphadapter.Effect {
	out := graphadapter.Effect{Name: e.Name, Version: e.Version, Target: e.Target,
		OnLoss: e.OnLoss, Do: untypedDo(e.Do)}
	if e.Lookup != nil {
		out.Lookup = untypedLookup(e.Lookup)
	}
	if check := e.Check; check != nil {
		out.Check = func(params, receipt pregel.Value) error {
			p, r, err := decodeBoth[P, R](params, receipt)
			if err != nil {
				return err
			}
			return check(p, r)
		}
	}
	if compensate := e.Compensate; compensate != nil {
		out.Compensate = func(ctx context.Context, key string, params, receipt pregel.Value) error {
			p, r, err := decodeBoth[P, R](params, receipt)
			if err != nil {
				return graphadapter.Permanent(err)
			}
			return compensate(ctx, key, p, r)
		}
	}
	if ask := e.Approval; ask != nil {
		out.Approval = func(params pregel.Value) (approval.Action, bool, error) {
			p, err := readProposed[P](params)
			if err != nil {
				return approval.Action{}, false, err
			}
			action, needed := ask(p)
			return action, needed, nil
		}
		out.Canonical = func(params pregel.Value) (pregel.Value, error) {
			p, err := readProposed[P](params)
			if err == nil {
				err = jsonfit.Complete(params, reflect.TypeFor[P]())
			}
			if err != nil {
				return nil, err
			}
			return jsonfit.Encode(p)
		}
	}
	return out
}

// readProposed reads parameters that a person may have written. The error says what does not fit, and holds no value: it
// may be a secret that stands in the wrong place.
func readProposed[P any](params pregel.Value) (p P, err error) {
	err = jsonfit.Explain(jsonfit.DecodeStrict(params, &p), reflect.TypeFor[P](), params)
	if wrong, ok := errors.AsType[*jsonfit.Misfit](err); ok {
		return p, errors.New(wrong.WithoutValue(jsonfit.TypeName(reflect.TypeFor[P]())))
	}
	return p, err
}

func untypedDo[P, R any](do func(context.Context, string, P) (R, error)) func(context.Context, string, pregel.Value) (pregel.Value, error) {
	return func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		var p P
		if err := jsonfit.Decode(params, &p); err != nil {
			return nil, graphadapter.Permanent(fmt.Errorf("the parameters do not decode: %w", err))
		}
		receipt, err := do(ctx, key, p)
		if err != nil {
			return nil, err
		}
		return jsonfit.Encode(receipt)
	}
}

func untypedLookup[P, R any](lookup func(context.Context, string, P) (Finding[R], error)) func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
	return func(ctx context.Context, key string, params pregel.Value) (graphadapter.Finding, error) {
		var p P
		if err := jsonfit.Decode(params, &p); err != nil {
			return graphadapter.Finding{}, graphadapter.Permanent(fmt.Errorf("the parameters do not decode: %w", err))
		}
		f, err := lookup(ctx, key, p)
		if err != nil {
			return graphadapter.Finding{}, err
		}
		out := graphadapter.Finding{Status: f.Status, Note: f.Note}
		if f.Status == FindingCommitted || f.Status == FindingPartial {
			out.Receipt, err = jsonfit.Encode(f.Receipt)
		}
		return out, err
	}
}

func decodeBoth[P, R any](params, receipt pregel.Value) (p P, r R, err error) {
	if err = jsonfit.Decode(params, &p); err != nil {
		return p, r, fmt.Errorf("the parameters do not decode: %w", err)
	}
	if err = jsonfit.Decode(receipt, &r); err != nil {
		return p, r, fmt.Errorf("the receipt does not decode: %w", err)
	}
	return p, r, nil
}

// CheckCall returns nil while something may be sent for the call that ctx belongs to: Do's, Lookup's or Compensate's. Ask it
// right before the bytes leave, where [GuardedTransport] cannot: in another protocol than HTTP, or behind a connection that
// many calls share. Otherwise the error is [ErrCallOver], ErrOutsideCall, or why the call ended. It asks the clocks, not the
// timers, which are late when the process or the machine stood still.
func CheckCall(ctx context.Context) error { return guard.Check(ctx) }

// CallDeadline returns when the call that ctx belongs to is over at the latest, and false when it belongs to none. Hand it to
// the target, if that can refuse what arrives after it: then nothing that a network held back is acted upon. The deadline is
// one of this machine's clock.
func CallDeadline(ctx context.Context) (time.Time, bool) {
	c, ok := taskrun.CallFrom(ctx)
	if !ok {
		return time.Time{}, false
	}
	return c.Deadline(), true
}

// GuardedTransport returns a transport for the requests of effects: it sends nothing for a call whose time is over, or whose
// task may be another worker's by now, however late timers and contexts are because the process stood still. The call is
// asked for (see [CheckCall]) when a request begins, and whenever a piece of its body is read.
//
// Of an [http.Transport], or of nil for a copy of [http.DefaultTransport], the connections are guarded as well: the call is
// asked for right before each write to the network, and a connection whose call has no answer yet is torn down with what
// the kernel has not sent. It is then HTTP/1.1 only, since over HTTP/2 many calls share one connection. What remains is the
// moment between that question and the system call.
//
// A request that may change something (another method than GET, HEAD, OPTIONS or TRACE) needs the context of a call, else
// [ErrOutsideCall]; and it is sent once, also with a header that lets net/http send it again ([ErrSentBefore]).
func GuardedTransport(base http.RoundTripper) http.RoundTripper { return guard.Transport(base) }
