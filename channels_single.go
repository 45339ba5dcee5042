package superstep

import (
	"fmt"
	"reflect"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// single is the common part of the channels that hold one value and are written by setting it.
type single[T any] struct {
	read *stored[T]
	set  *T
}

// Get returns the value: the one set last in this node, else the one that the task read, else T's zero value. It is
// decoded at the first call. What T points to is shared by the copies of this state, so change it only to Set it. A
// stored value that is not a T fails the task with a *[StateError] after the node returned; Get returns the zero value
// then. Numbers inside an any are json.Number, so that int64 survives exactly.
func (c single[T]) Get() T {
	if c.set != nil {
		return *c.set
	}
	return c.read.get()
}

// IsSet reports whether the channel has a value. An explicit null is one.
func (c single[T]) IsSet() bool { return c.set != nil || c.read != nil }

// IsZero reports whether the channel has no value; the json option omitzero follows it.
func (c single[T]) IsZero() bool { return !c.IsSet() }

// Set writes the value. Several calls in one node are one write, of the last value. It is encoded when the node
// returns.
func (c *single[T]) Set(v T) { c.set = &v }

// String returns the value as fmt prints it, or "unset".
func (c single[T]) String() string {
	if !c.IsSet() {
		return "unset"
	}
	return fmt.Sprint(c.Get())
}

// MarshalJSON returns the value's JSON, null while there is none.
func (c single[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON sets the value.
func (c *single[T]) UnmarshalJSON(data []byte) error {
	var v T
	if err := jsonfit.Decode(data, &v); err != nil {
		return err
	}
	c.Set(v)
	return nil
}

func (c *single[T]) bind(s *scope, field string, raw pregel.Value) {
	*c = single[T]{read: &stored[T]{raw: raw, field: field, scope: s}}
}

func (c *single[T]) load() { c.read.get() }

func (c *single[T]) written() ([]pregel.Write, error) {
	if c.set == nil {
		return nil, nil
	}
	raw, err := jsonfit.Encode(*c.set)
	return []pregel.Write{{Value: raw}}, err
}

// encode hands on what was read as it is: it may have more fields than T knows.
func (c single[T]) encode() (pregel.Value, error) {
	switch {
	case c.set != nil:
		return jsonfit.Encode(*c.set)
	case c.read != nil:
		return c.read.raw, nil
	}
	return pregel.Null, nil
}

func (c *single[T]) declareAs(kind pregel.Kind, name string, o fieldOptions) (declaration, error) {
	if o.accumulate {
		return declaration{}, errAccumulate
	}
	if o.unguarded && kind != pregel.KindEphemeral && kind != pregel.KindUntracked {
		return declaration{}, errUnguarded
	}
	t := reflect.TypeFor[T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: kind, Unguarded: o.unguarded},
		value: t, update: t,
		check: jsonfit.CheckSingle[T],
	}, nil
}

// Value is a state field that holds the last value written (LangGraph's LastValue). Two nodes that set it in the same
// superstep are an error of the run; make the field a reducing one, such as [List], or let one node write it.
type Value[T any] struct{ single[T] }

func (c *Value[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindLast, name, o)
}

// AnyValue is a state field that holds the last value written in task order (LangGraph's AnyValue): several nodes may
// set it in one superstep, meant for when they all set the same. A superstep without a write to it empties it.
type AnyValue[T any] struct{ single[T] }

func (c *AnyValue[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindAny, name, o)
}

// Ephemeral is a state field whose value is visible only in the superstep after the write (LangGraph's
// EphemeralValue). Two writes in one superstep are an error, unless the field has the tag `superstep:"unguarded"`: then
// the last in task order stays.
type Ephemeral[T any] struct{ single[T] }

func (c *Ephemeral[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindEphemeral, name, o)
}

// Untracked is a state field that is kept during a run but never part of a checkpoint (LangGraph's UntrackedValue):
// after an interrupt or a crash it is empty. The tag `superstep:"unguarded"` lets several writes of one superstep
// through; the last in task order stays.
type Untracked[T any] struct{ single[T] }

func (c *Untracked[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindUntracked, name, o)
}

// Number is what a [Sum] adds.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum is a state field that adds up what nodes write to it (reducer "sum/v1"), starting from 0. The engine adds
// integers exactly, whatever their size; a total that does not fit T fails the task that reads it.
type Sum[T Number] struct {
	read  *stored[T]
	local *change[T]
}

// Get returns the total with this node's own writes. A stored value that is not a T fails the task with a
// *[StateError] after the node returned.
func (c Sum[T]) Get() T {
	changes := c.local.inOrder()
	var total T
	if !overwritten(changes) {
		total = c.read.get()
	}
	for _, w := range changes {
		total += w.value
	}
	return total
}

// Add writes an addend.
func (c *Sum[T]) Add(v T) { c.local = &change[T]{before: c.local, value: v} }

// Overwrite replaces the total and drops what siblings add in the same superstep; two overwrites of a channel in one
// superstep are an error of the run. What this node adds afterwards is part of the replacement.
func (c *Sum[T]) Overwrite(v T) { c.local = &change[T]{before: c.local, value: v, overwrite: true} }

// IsZero reports whether the sum was neither read nor written; the json option omitzero follows it. A total of 0 that
// was read or written is not zero in this sense.
func (c Sum[T]) IsZero() bool { return c.read == nil && c.local == nil }

// String returns the total as fmt prints it.
func (c Sum[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the total with this node's own writes.
func (c Sum[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON adds a JSON number.
func (c *Sum[T]) UnmarshalJSON(data []byte) error {
	var v T
	if err := jsonfit.Decode(data, &v); err != nil {
		return err
	}
	c.Add(v)
	return nil
}

func (c *Sum[T]) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: "sum/v1"},
		value: t, update: t,
		check: jsonfit.CheckUpdate[T]('0'),
	}, o.none()
}

func (c *Sum[T]) bind(s *scope, field string, raw pregel.Value) {
	*c = Sum[T]{read: &stored[T]{raw: raw, field: field, scope: s}}
}

func (c *Sum[T]) load() { c.read.get() }

// written keeps one write for each Add: the engine adds without overflow, which T may not.
func (c *Sum[T]) written() ([]pregel.Write, error) {
	changes := c.local.inOrder()
	if overwritten(changes) {
		raw, err := jsonfit.Encode(c.Get())
		return []pregel.Write{{Value: raw, Overwrite: true}}, err
	}
	out := make([]pregel.Write, len(changes))
	for i, w := range changes {
		raw, err := jsonfit.Encode(w.value)
		if err != nil {
			return nil, err
		}
		out[i].Value = raw
	}
	return out, nil
}

func (c Sum[T]) encode() (pregel.Value, error) {
	if c.local == nil && c.read != nil {
		return c.read.raw, nil
	}
	return jsonfit.Encode(c.Get())
}
