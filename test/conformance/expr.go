package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"superstep.dev/test/conformance/trace"
)

// expr is a compiled expression of the script language.
type expr func(f *frame) (any, error)

// literal is the expression that is v.
func literal(v any) expr { return func(*frame) (any, error) { return v, nil } }

// parseExpr compiles an E: an object whose only key starts with $ is evaluated, any other JSON stands for itself.
func parseExpr(raw json.RawMessage) (expr, error) {
	if raw == nil {
		return nil, errors.New("an expression is missing")
	}
	if raw[0] == '{' {
		members, err := trace.Members(raw)
		if err != nil {
			return nil, err
		}
		if len(members) == 1 && strings.HasPrefix(members[0].Name, "$") {
			e, err := parseOperator(members[0].Name, members[0].Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", members[0].Name, err)
			}
			return e, nil
		}
	}
	v, err := trace.Decode(raw)
	if err != nil {
		return nil, err
	}
	return literal(v), nil
}

func parseOperator(name string, raw json.RawMessage) (expr, error) {
	switch name {
	case "$get", "$var":
		return parseName(name, raw)
	case "$arg", "$item":
		return parseTrue(name, raw)
	case "$obj":
		return parseObject(raw)
	case "$len":
		return parseUnary(raw, length)
	case "$not":
		return parseUnary(raw, func(v any) (any, error) { return !truthy(v), nil })
	case "$add":
		return parseList(raw, -1, add)
	case "$cat":
		return parseList(raw, -1, cat)
	case "$list":
		return parseList(raw, -1, func(items []any) (any, error) { return items, nil })
	case "$lt":
		return parseList(raw, 2, less)
	case "$eq":
		return parseList(raw, 2, func(v []any) (any, error) { return trace.Canonical(v[0]) == trace.Canonical(v[1]), nil })
	case "$at":
		return parseList(raw, 2, func(v []any) (any, error) { return element(v[0], v[1]) })
	}
	return nil, errors.New("there is no such operator")
}

func parseName(operator string, raw json.RawMessage) (expr, error) {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return nil, fmt.Errorf("want a name: %w", err)
	}
	if operator == "$var" {
		return func(f *frame) (any, error) { return f.vars[name], nil }, nil
	}
	return func(f *frame) (any, error) {
		input, _ := f.input.(map[string]any)
		return input[name], nil
	}, nil
}

func parseTrue(operator string, raw json.RawMessage) (expr, error) {
	if string(raw) != "true" {
		return nil, fmt.Errorf("takes true, got %s", trace.Brief(string(raw)))
	}
	if operator == "$item" {
		return func(f *frame) (any, error) { return f.item, nil }, nil
	}
	return func(f *frame) (any, error) { return f.input, nil }, nil
}

func parseUnary(raw json.RawMessage, apply func(any) (any, error)) (expr, error) {
	operand, err := parseExpr(raw)
	if err != nil {
		return nil, err
	}
	return func(f *frame) (any, error) {
		v, err := operand(f)
		if err != nil {
			return nil, err
		}
		return apply(v)
	}, nil
}

// parseList compiles an operator on a list of expressions; want is their number, -1 for any.
func parseList(raw json.RawMessage, want int, apply func([]any) (any, error)) (expr, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return nil, fmt.Errorf("want a list of expressions: %w", err)
	}
	if want >= 0 && len(raws) != want {
		return nil, fmt.Errorf("want %d expressions, got %d", want, len(raws))
	}
	operands := make([]expr, len(raws))
	for i, raw := range raws {
		var err error
		if operands[i], err = parseExpr(raw); err != nil {
			return nil, err
		}
	}
	return func(f *frame) (any, error) {
		values := make([]any, len(operands))
		for i, operand := range operands {
			var err error
			if values[i], err = operand(f); err != nil {
				return nil, err
			}
		}
		return apply(values)
	}, nil
}

func parseObject(raw json.RawMessage) (expr, error) {
	members, err := trace.Members(raw)
	if err != nil {
		return nil, err
	}
	values := make([]expr, len(members))
	for i, m := range members {
		if values[i], err = parseExpr(m.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return func(f *frame) (any, error) {
		out := make(map[string]any, len(members))
		for i, m := range members {
			v, err := values[i](f)
			if err != nil {
				return nil, err
			}
			out[m.Name] = v
		}
		return out, nil
	}, nil
}

// truthy reports whether v counts as true: everything does except false, null, 0 and what is empty.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

func length(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return int64(0), nil
	case string:
		return int64(len(v)), nil // the format's texts are ASCII
	case []any:
		return int64(len(v)), nil
	case map[string]any:
		return int64(len(v)), nil
	}
	return nil, fmt.Errorf("$len of %s", trace.Brief(trace.Canonical(v)))
}

// integer is v as a number; null counts as 0.
func integer(v any) (int64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		return v, nil
	}
	return 0, fmt.Errorf("want an integer, got %s", trace.Brief(trace.Canonical(v)))
}

func add(values []any) (any, error) {
	var sum int64
	for _, v := range values {
		n, err := integer(v)
		if err != nil {
			return nil, fmt.Errorf("$add: %w", err)
		}
		if n > 0 && sum > math.MaxInt64-n || n < 0 && sum < math.MinInt64-n {
			return nil, errors.New("$add: the sum is no 64-bit integer")
		}
		sum += n
	}
	return sum, nil
}

func less(values []any) (any, error) {
	a, err := integer(values[0])
	if err != nil {
		return nil, fmt.Errorf("$lt: %w", err)
	}
	b, err := integer(values[1])
	if err != nil {
		return nil, fmt.Errorf("$lt: %w", err)
	}
	return a < b, nil
}

// cat concatenates lists if all values are lists, else texts, where what is no string appears as canonical JSON.
func cat(values []any) (any, error) {
	joined := []any{}
	for _, v := range values {
		list, ok := v.([]any)
		if !ok {
			return catText(values), nil
		}
		joined = append(joined, list...)
	}
	return joined, nil
}

func catText(values []any) string {
	var b strings.Builder
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.WriteString(s)
			continue
		}
		b.WriteString(trace.Canonical(v))
	}
	return b.String()
}

// element is the element of an object or a list, null if there is none.
func element(of, key any) (any, error) {
	switch key := key.(type) {
	case string:
		object, _ := of.(map[string]any)
		return object[key], nil
	case int64:
		if list, ok := of.([]any); ok && key >= 0 && key < int64(len(list)) {
			return list[key], nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("$at: a key is a string or an integer, got %s", trace.Brief(trace.Canonical(key)))
}
