package pregel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
)

// Reducer folds the updates of one superstep into a channel's value. It must be pure: it runs inside workflow code and
// is replayed. Its name carries a version ("sections.longest/v1"): new behaviour gets a new name, because a run in
// flight goes on with the name that its Spec recorded.
type Reducer interface {
	Name() string
	// Zero is the channel's value before the first write; nil means it has none.
	Zero() Value
	// Reduce folds updates, in task order, into current, which is nil while the channel has no value. Overwrites
	// never reach it. An error fails the superstep with nothing applied.
	Reduce(current Value, updates []Value) (Value, error)
}

// Builtin returns the engine's own reducer of that name: append/v1, sum/v1, max/v1, concat/v1, merge/v1, messages/v1.
func Builtin(name string) (Reducer, bool) {
	f, known := builtins[name]
	f.name = name
	return f, known
}

var builtins = map[string]fold{
	"append/v1":     {zero: emptyList, grow: appendLists},
	"sum/v1":        {zero: Value("0"), reduce: sumNumbers},
	"max/v1":        {zero: Value("0"), reduce: maxNumber},
	"concat/v1":     {zero: Value(`""`), reduce: concatStrings},
	"merge/v1":      {zero: emptyObject, reduce: mergeObjects},
	messagesReducer: {zero: emptyList, grow: reduceMessages},
}

// fold is a builtin reducer: one of both functions.
type fold struct {
	name   string
	zero   Value
	reduce func(current Value, updates []Value) (Value, error)
	grow   func(current Held, updates []Value) (Held, error)
}

func (f fold) Name() string { return f.name }

func (f fold) Zero() Value { return f.zero }

func (f fold) Reduce(current Value, updates []Value) (Value, error) {
	if current == nil {
		current = f.zero
	}
	if f.grow != nil {
		grown, err := f.grow(Hold(current), updates)
		return grown.Value(), err
	}
	return f.reduce(current, updates)
}

func appendLists(current Held, updates []Value) (Held, error) {
	for _, u := range updates {
		if !isList(u) {
			return Held{}, fmt.Errorf("append/v1 takes lists, got %s", brief(u))
		}
	}
	if !isList(current.text) {
		return Held{}, fmt.Errorf("append/v1 holds a list, got %s", brief(current.text))
	}
	return current.with(updates), nil
}

// sumNumbers adds exactly: integers of any size stay integers; as soon as one operand has a fraction or an exponent
// the sum is a float64.
func sumNumbers(current Value, updates []Value) (Value, error) {
	if total, ok := sumSmall(current, updates); ok {
		return strconv.AppendInt(nil, total, 10), nil
	}
	total, float, isFloat := new(big.Int), 0.0, false
	for _, v := range append([]Value{current}, updates...) {
		n, f, integer, err := number(v)
		if err != nil {
			return nil, fmt.Errorf("sum/v1: %w", err)
		}
		if integer {
			total.Add(total, n)
			continue
		}
		isFloat, float = true, float+f
	}
	if !isFloat {
		return Value(total.String()), nil
	}
	whole, _ := new(big.Float).SetInt(total).Float64()
	return json.Marshal(whole + float)
}

// sumSmall adds integers that are far from overflowing, which nearly all are.
func sumSmall(current Value, updates []Value) (total int64, ok bool) {
	const bound = 1 << 62
	if total, ok = SmallInteger(current); !ok {
		return 0, false
	}
	for _, u := range updates {
		n, ok := SmallInteger(u)
		if !ok || total > bound || total < -bound {
			return 0, false
		}
		total += n
	}
	return total, true
}

// SmallInteger reads a JSON integer of at most 18 digits, which fits an int64. It reports false for anything else, also for
// what is no JSON.
func SmallInteger(v Value) (n int64, ok bool) {
	digits := v
	if len(v) > 0 && v[0] == '-' {
		digits = v[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	if len(digits) < len(v) {
		n = -n
	}
	return n, true
}

func maxNumber(current Value, updates []Value) (Value, error) {
	best := current
	for _, u := range updates {
		less, err := lessNumber(best, u)
		if err != nil {
			return nil, fmt.Errorf("max/v1: %w", err)
		}
		if less {
			best = u
		}
	}
	return best, nil
}

func lessNumber(a, b Value) (bool, error) {
	if an, ok := SmallInteger(a); ok {
		if bn, ok := SmallInteger(b); ok {
			return an < bn, nil
		}
	}
	an, af, aInt, err := number(a)
	if err != nil {
		return false, err
	}
	bn, bf, bInt, err := number(b)
	if err != nil {
		return false, err
	}
	switch {
	case aInt && bInt:
		return an.Cmp(bn) < 0, nil
	case aInt:
		af, _ = new(big.Float).SetInt(an).Float64()
	case bInt:
		bf, _ = new(big.Float).SetInt(bn).Float64()
	}
	return af < bf, nil
}

// number decodes an integer exactly, or a float.
func number(v Value) (n *big.Int, f float64, integer bool, err error) {
	if n, ok := new(big.Int).SetString(string(v), 10); ok {
		return n, 0, true, nil
	}
	if err := json.Unmarshal(v, &f); err != nil || IsNull(v) {
		return nil, 0, false, fmt.Errorf("takes numbers, got %s", brief(v))
	}
	return nil, f, false, nil
}

func concatStrings(current Value, updates []Value) (Value, error) {
	var buf bytes.Buffer
	for _, v := range append([]Value{current}, updates...) {
		var s string
		if err := json.Unmarshal(v, &s); err != nil || IsNull(v) {
			return nil, fmt.Errorf("concat/v1 takes strings, got %s", brief(v))
		}
		buf.WriteString(s)
	}
	return json.Marshal(buf.String())
}

func mergeObjects(current Value, updates []Value) (Value, error) {
	merged := map[string]Value{}
	for _, v := range append([]Value{current}, updates...) {
		if len(v) == 0 || v[0] != '{' {
			return nil, fmt.Errorf("merge/v1 takes objects, got %s", brief(v))
		}
		// Decoding into a map keeps the keys it does not find: later objects win key by key.
		if err := json.Unmarshal(v, &merged); err != nil {
			return nil, fmt.Errorf("merge/v1: %w", err)
		}
	}
	return json.Marshal(merged)
}
