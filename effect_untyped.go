package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

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
			p, err := readProposed[P](params)
			if err != nil {
				return approval.Action{}, false, err
			}
			action, needed := ask(p)
			return action, needed, nil
		}
		out.Canonical = func(params pregel.Value) (pregel.Value, error) {
			p, err := readProposed[P](params)
			if err != nil {
				return nil, err
			}
			return encodeJSON(p)
		}
	}
	return out
}

// readProposed reads parameters that a person may have written. The error says what does not fit, and holds no value: it
// may be a secret that stands in the wrong place.
func readProposed[P any](params pregel.Value) (p P, err error) {
	err = explain(decodeStrict(params, &p), reflect.TypeFor[P](), params)
	if wrong, ok := errors.AsType[*misfit](err); ok {
		return p, errors.New(wrong.withoutValue(typeName(reflect.TypeFor[P]())))
	}
	return p, err
}

// withoutValue is what Error says, but for the value that does not fit. A reason that names a field is of this package's
// making; any other is a decoder's, which may quote what it has read.
func (m *misfit) withoutValue(of string) string {
	switch {
	case strings.Contains(m.reason, "unknown field"):
		return m.reason
	case m.reason != "":
		return "it does not fit " + of
	}
	kind := strings.Fields(m.found)
	return strings.TrimPrefix(fmt.Sprintf("%s: expected %s, found %s", m.path, m.expected, strings.Join(kind[:min(2, len(kind))], " ")), ": ")
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
