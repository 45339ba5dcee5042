package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// filter is what a value is to be: members by name, or, for a member, operators. Its numbers are json.Number.
type filter map[string]any

// The operators of a filter.
const (
	opEqual, opNotEqual     = "$eq", "$ne"
	opGreater, opNotLess    = "$gt", "$gte"
	opLess, opNotGreater    = "$lt", "$lte"
	operators               = opEqual + ", " + opNotEqual + ", " + opGreater + ", " + opNotLess + ", " + opLess + ", " + opNotGreater
	maxFilterDepth          = 32
	operatorPrefix          = "$"
	filterNull, filterEmpty = "null", "{}"
)

// parseFilter reads a filter, nil for one that fits everything.
func parseFilter(v any) (filter, error) {
	if v == nil {
		return nil, nil
	}
	if text, err := json.Marshal(v); err == nil && (string(text) == filterNull || string(text) == filterEmpty) {
		return nil, nil
	}
	text, err := asObject("filter", v, MaxFilterBytes)
	if err != nil {
		return nil, err
	}
	f, err := decodeNumbers(text)
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Message: "the filter is no JSON", Cause: err}
	}
	members, _ := f.(map[string]any)
	for name := range members {
		if strings.HasPrefix(name, operatorPrefix) {
			return nil, refuse("the filter has the operator %.20q where a member's name is wanted: {\"age\": {\"$gt\": 3}}", name)
		}
	}
	return members, checkFilter(members, 0)
}

// checkFilter refuses operators that there are not, and nesting that nobody means.
func checkFilter(v any, depth int) error {
	members, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if depth > maxFilterDepth {
		return refuse("the filter is nested more than %d deep", maxFilterDepth)
	}
	ops := isOperators(members)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if ops && !slices.Contains(strings.Split(operators, ", "), name) {
			return refuse("the filter's operator %.20q is none of %s", name, operators)
		}
		if err := checkFilter(members[name], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isOperators reports whether an object of a filter has operators rather than members.
func isOperators(members map[string]any) bool {
	for name := range members {
		if strings.HasPrefix(name, operatorPrefix) {
			return true
		}
	}
	return false
}

// matches reports whether a value fits.
func (f filter) matches(value json.RawMessage) bool {
	if f == nil {
		return true
	}
	v, err := decodeNumbers(value)
	return err == nil && fits(v, map[string]any(f))
}

// fits reports whether a value is as wanted: an object has at least the wanted members, a list is the same one, anything else is equal.
// What is not there is null.
func fits(v, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		if isOperators(wanted) {
			for op, operand := range wanted {
				if !holds(v, op, operand) {
					return false
				}
			}
			return true
		}
		members, ok := v.(map[string]any)
		if !ok {
			return false
		}
		for name, want := range wanted {
			if !fits(members[name], want) {
				return false
			}
		}
		return true
	case []any:
		list, ok := v.([]any)
		return ok && slices.EqualFunc(list, wanted, fits)
	case json.Number:
		n, ok := v.(json.Number)
		return ok && compareNumbers(n, wanted) == 0
	}
	return v == wanted // texts, booleans and null; other kinds are never equal to one
}

// holds reports whether an operator is true of a value and its operand. Only numbers have an order among each other, and texts, which go by
// their bytes.
func holds(v any, op string, operand any) bool {
	switch op {
	case opEqual:
		return fits(v, operand)
	case opNotEqual:
		return !fits(v, operand)
	}
	order := 0
	switch a := v.(type) {
	case json.Number:
		b, ok := operand.(json.Number)
		if !ok {
			return false
		}
		order = compareNumbers(a, b)
	case string:
		b, ok := operand.(string)
		if !ok {
			return false
		}
		order = strings.Compare(a, b)
	default:
		return false
	}
	switch op {
	case opGreater:
		return order > 0
	case opNotLess:
		return order >= 0
	case opLess:
		return order < 0
	}
	return order <= 0
}

// compareNumbers compares whole numbers as they are, and others as floating point.
func compareNumbers(a, b json.Number) int {
	i, errA := a.Int64()
	j, errB := b.Int64()
	if errA == nil && errB == nil {
		return cmp.Compare(i, j)
	}
	x, _ := a.Float64() // beyond its range it is infinite
	y, _ := b.Float64()
	return cmp.Compare(x, y)
}

// decodeNumbers decodes JSON with its numbers as they are written.
func decodeNumbers(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
