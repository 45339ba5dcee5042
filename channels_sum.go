package superstep

import (
	"fmt"
	"reflect"

	"superstep.dev/graphadapter/pregel"
)

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
	if err := decodeJSON(data, &v); err != nil {
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
		check: checkUpdate[T]('0'),
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
		raw, err := encodeJSON(c.Get())
		return []pregel.Write{{Value: raw, Overwrite: true}}, err
	}
	out := make([]pregel.Write, len(changes))
	for i, w := range changes {
		raw, err := encodeJSON(w.value)
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
	return encodeJSON(c.Get())
}
