package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

func (p *parser) write(raw json.RawMessage) (op, error) {
	var doc struct {
		Op      string          `json:"op"`
		Channel string          `json:"channel"`
		Value   json.RawMessage `json:"value"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	value, err := parseExpr(doc.Value)
	if err != nil {
		return nil, err
	}
	return evaluate(value, func(f *frame, v any) error { f.put(doc.Channel, v); return nil }), nil
}

func (p *parser) let(raw json.RawMessage) (op, error) {
	var doc struct {
		Op    string          `json:"op"`
		Var   string          `json:"var"`
		Value json.RawMessage `json:"value"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	value, err := parseExpr(doc.Value)
	if err != nil {
		return nil, err
	}
	return evaluate(value, func(f *frame, v any) error { f.vars[doc.Var] = v; return nil }), nil
}

// evaluate is the operation that does something with an expression's value.
func evaluate(e expr, do func(*frame, any) error) op {
	return func(f *frame) error {
		v, err := e(f)
		if err != nil {
			return err
		}
		return do(f, v)
	}
}

func (p *parser) branching(raw json.RawMessage) (op, error) {
	var doc struct {
		Op   string          `json:"op"`
		Cond json.RawMessage `json:"cond"`
		Then json.RawMessage `json:"then"`
		Else json.RawMessage `json:"else"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	cond, err := parseExpr(doc.Cond)
	if err != nil {
		return nil, err
	}
	then, err := p.script(doc.Then)
	if err != nil {
		return nil, fmt.Errorf("then: %w", err)
	}
	var otherwise script
	if doc.Else != nil {
		if otherwise, err = p.script(doc.Else); err != nil {
			return nil, fmt.Errorf("else: %w", err)
		}
	}
	return evaluate(cond, func(f *frame, v any) error {
		if truthy(v) {
			return then.steps(f)
		}
		return otherwise.steps(f)
	}), nil
}

func (p *parser) jump(raw json.RawMessage) (op, error) {
	var doc struct {
		Op    string            `json:"op"`
		To    []json.RawMessage `json:"to"`
		Graph string            `json:"graph"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	if doc.Graph != "" && doc.Graph != "parent" {
		return nil, fmt.Errorf("graph is \"parent\", got %q", doc.Graph)
	}
	to, err := parseTargets(doc.To)
	if err != nil {
		return nil, err
	}
	return func(f *frame) error {
		f.moved, f.parent = true, f.parent || doc.Graph != ""
		return f.aim(to)
	}, nil
}

func (p *parser) route(raw json.RawMessage) (op, error) {
	var doc struct {
		Op string            `json:"op"`
		To []json.RawMessage `json:"to"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	to, err := parseTargets(doc.To)
	if err != nil {
		return nil, err
	}
	return func(f *frame) error { return f.aim(to) }, nil
}

func (f *frame) aim(to []target) error {
	for _, t := range to {
		targets, err := t(f)
		if err != nil {
			return err
		}
		f.targets = append(f.targets, targets...)
	}
	return nil
}

func (p *parser) interrupt(raw json.RawMessage) (op, error) {
	var doc struct {
		Op    string          `json:"op"`
		Value json.RawMessage `json:"value"`
		Into  string          `json:"into"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	value, err := parseExpr(doc.Value)
	if err != nil {
		return nil, err
	}
	return evaluate(value, func(f *frame, v any) error {
		answer, err := f.host.ask(f.ctx, v)
		if err != nil {
			return &hostError{err}
		}
		if doc.Into != "" {
			f.vars[doc.Into] = answer
		}
		return nil
	}), nil
}

func (p *parser) fail(raw json.RawMessage) (op, error) {
	var doc struct {
		Op      string `json:"op"`
		Message string `json:"message"`
		Times   *int   `json:"times"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	executed := 0
	return func(*frame) error {
		p.counts.Lock()
		defer p.counts.Unlock()
		executed++
		if doc.Times != nil && executed > *doc.Times {
			return nil
		}
		return &hostError{&NodeFailure{Message: doc.Message}}
	}, nil
}

func (p *parser) custom(raw json.RawMessage) (op, error) {
	var doc struct {
		Op    string          `json:"op"`
		Value json.RawMessage `json:"value"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	value, err := parseExpr(doc.Value)
	if err != nil {
		return nil, err
	}
	return evaluate(value, func(f *frame, v any) error {
		if err := f.host.emit(f.ctx, v); err != nil {
			return &hostError{err}
		}
		return nil
	}), nil
}

func (p *parser) call(raw json.RawMessage) (op, error) {
	var doc struct {
		Op    string          `json:"op"`
		Graph string          `json:"graph"`
		Input json.RawMessage `json:"input"`
		Into  string          `json:"into"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	if doc.Graph == "" {
		return nil, errors.New("it names no graph")
	}
	input, err := parseExpr(doc.Input)
	if err != nil {
		return nil, err
	}
	p.calls[doc.Graph] = true
	return evaluate(input, func(f *frame, v any) error {
		output, err := f.host.call(f.ctx, doc.Graph, v)
		if err != nil {
			return &hostError{raisedAgain(err)}
		}
		f.vars[doc.Into] = output
		return nil
	}), nil
}

// raisedAgain is the failure of a called graph as the script that called the graph raises it: a fail operation's failure
// is the same one, whose text names no node.
func raisedAgain(err error) error {
	var node *pregel.NodeError
	if errors.As(err, &node) && nodeErrorType(node) == typeNodeFailure {
		return &NodeFailure{Message: node.Message}
	}
	return err
}

func (p *parser) sleep(raw json.RawMessage) (op, error) {
	var doc struct {
		Op string `json:"op"`
		MS int64  `json:"ms"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	return func(f *frame) error {
		timer := time.NewTimer(time.Duration(doc.MS) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-f.ctx.Done():
			return &hostError{f.ctx.Err()}
		}
	}, nil
}

func (p *parser) nothing(raw json.RawMessage) (op, error) {
	var doc struct {
		Op string `json:"op"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	return func(f *frame) error {
		f.nothing = true
		return errEnd
	}, nil
}

// target gives the targets that a TARGET stands for: one, or one for each element with each.
type target func(f *frame) ([]pregel.Target, error)

func parseTargets(raws []json.RawMessage) ([]target, error) {
	out := make([]target, 0, len(raws))
	for i, raw := range raws {
		t, err := parseTarget(raw)
		if err != nil {
			return nil, fmt.Errorf("target %d: %w", i, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func parseTarget(raw json.RawMessage) (target, error) {
	var keys map[string]json.RawMessage
	if raw[0] == '{' {
		if err := json.Unmarshal(raw, &keys); err != nil {
			return nil, err
		}
	}
	if _, ok := keys["send"]; ok {
		return parseSend(raw)
	}
	name, err := parseExpr(raw)
	if err != nil {
		return nil, err
	}
	return func(f *frame) ([]pregel.Target, error) {
		v, err := name(f)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case string:
			return []pregel.Target{{Node: v}}, nil
		case nil:
			// A null target is for the engine to refuse; the empty name is how a Target says it.
			return []pregel.Target{{}}, nil
		}
		return nil, fmt.Errorf("a target is a name or a send, got %s", trace.Brief(trace.Canonical(v)))
	}, nil
}

func parseSend(raw json.RawMessage) (target, error) {
	var doc struct {
		Send string          `json:"send"`
		Each json.RawMessage `json:"each"`
		Arg  json.RawMessage `json:"arg"`
	}
	if err := trace.DecodeStrict(raw, &doc); err != nil {
		return nil, err
	}
	arg, err := parseExpr(doc.Arg)
	if err != nil {
		return nil, fmt.Errorf("arg: %w", err)
	}
	each := literal([]any{nil}) // without each there is one send, and no item
	if doc.Each != nil {
		if each, err = parseExpr(doc.Each); err != nil {
			return nil, fmt.Errorf("each: %w", err)
		}
	}
	return func(f *frame) ([]pregel.Target, error) {
		items, err := each(f)
		if err != nil {
			return nil, err
		}
		list, ok := items.([]any)
		if !ok {
			return nil, fmt.Errorf("each is a list, got %s", trace.Brief(trace.Canonical(items)))
		}
		defer func(item any) { f.item = item }(f.item)
		var out []pregel.Target
		for _, item := range list {
			f.item = item
			v, err := arg(f)
			if err != nil {
				return nil, err
			}
			out = append(out, pregel.Target{Node: doc.Send, Send: true, Arg: trace.Encode(v)})
		}
		return out, nil
	}, nil
}
