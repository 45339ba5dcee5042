package superstep

import (
	"context"
	"fmt"
	"reflect"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func (e *Effect[P, R]) adapter() graphadapter.Effect {
	out := graphadapter.Effect{Name: e.Name, Version: e.Version, Target: ledger.Target(e.Target),
		AfterLoss: ledger.Loss(e.AfterLoss), Do: untypedDo(e.Do)}
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
			var p P
			if err := explain(decodeStrict(params, &p), reflect.TypeFor[P](), params); err != nil {
				return approval.Action{}, false, err
			}
			action, needed := ask(p)
			return action, needed, nil
		}
	}
	return out
}

func untypedDo[P, R any](do func(context.Context, string, P) (R, error)) func(context.Context, string, pregel.Value) (pregel.Value, error) {
	return func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		var p P
		if err := decodeJSON(params, &p); err != nil {
			return nil, graphadapter.Permanent(fmt.Errorf("the parameters do not decode: %w", err))
		}
		receipt, err := do(ctx, key, p)
		if err != nil {
			return nil, err
		}
		return encodeJSON(receipt)
	}
}

func untypedLookup[P, R any](lookup func(context.Context, string, P) (Finding[R], error)) func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
	return func(ctx context.Context, key string, params pregel.Value) (graphadapter.Finding, error) {
		var p P
		if err := decodeJSON(params, &p); err != nil {
			return graphadapter.Finding{}, graphadapter.Permanent(fmt.Errorf("the parameters do not decode: %w", err))
		}
		f, err := lookup(ctx, key, p)
		if err != nil {
			return graphadapter.Finding{}, err
		}
		out := graphadapter.Finding{Status: ledger.Finding(f.Status), Note: f.Note}
		if f.Status == FindingCommitted || f.Status == FindingPartial {
			out.Receipt, err = encodeJSON(f.Receipt)
		}
		return out, err
	}
}

func decodeBoth[P, R any](params, receipt pregel.Value) (p P, r R, err error) {
	if err = decodeJSON(params, &p); err != nil {
		return p, r, fmt.Errorf("the parameters do not decode: %w", err)
	}
	if err = decodeJSON(receipt, &r); err != nil {
		return p, r, fmt.Errorf("the receipt does not decode: %w", err)
	}
	return p, r, nil
}
