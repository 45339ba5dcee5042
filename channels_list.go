package superstep

import (
	"fmt"
	"reflect"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// List is a state field that nodes append to (reducer "append/v1"). Appends of one superstep are in task order: nodes
// by name, then Sends in the order they were made.
type List[T any] struct {
	read  *stored[[]T]
	local *change[[]T]
}

// Get returns the list with this node's own writes. The slice is the caller's: changing it changes nothing here, though
// what its elements point to is shared by the copies of this state. A stored value that is not a list of T fails the
// task with a *[StateError] after the node returned.
func (c List[T]) Get() []T {
	changes := c.local.inOrder()
	var out []T
	if !overwritten(changes) {
		out = slices.Clone(c.read.get())
	}
	for _, w := range changes {
		out = append(out, w.value...)
	}
	return out
}

// Append writes elements at the end. Without an element it writes nothing. They are encoded when the node returns.
func (c *List[T]) Append(elements ...T) {
	if len(elements) > 0 {
		c.local = &change[[]T]{before: c.local, value: slices.Clone(elements)}
	}
}

// Overwrite replaces the whole list and drops what siblings append in the same superstep; two overwrites of a channel
// in one superstep are an error of the run. What this node appends afterwards is part of the replacement.
func (c *List[T]) Overwrite(elements []T) {
	c.local = &change[[]T]{before: c.local, value: slices.Clone(elements), overwrite: true}
}

// IsZero reports whether the list was neither read nor written; the json option omitzero follows it.
func (c List[T]) IsZero() bool { return c.read == nil && c.local == nil }

// String returns the list as fmt prints it.
func (c List[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the list with this node's own writes; it is never null.
func (c List[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON appends the elements of a JSON array.
func (c *List[T]) UnmarshalJSON(data []byte) error {
	var elements []T
	if err := decodeJSON(data, &elements); err != nil {
		return err
	}
	c.Append(elements...)
	return nil
}

func (c *List[T]) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[[]T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: "append/v1"},
		value: t, update: t,
		check: checkUpdate[[]T]('['),
	}, o.none()
}

func (c *List[T]) bind(s *scope, field string, raw pregel.Value) {
	*c = List[T]{read: &stored[[]T]{raw: raw, field: field, scope: s}}
}

func (c *List[T]) load() { c.read.get() }

// written makes one write of all appends: appending is associative, and a write each would grow the run's history.
func (c *List[T]) written() ([]pregel.Write, error) {
	changes := c.local.inOrder()
	if len(changes) == 0 {
		return nil, nil
	}
	all := []T{}
	for _, w := range changes {
		all = append(all, w.value...)
	}
	raw, err := encodeJSON(all)
	return []pregel.Write{{Value: raw, Overwrite: overwritten(changes)}}, err
}

func (c List[T]) encode() (pregel.Value, error) {
	if c.local == nil && c.read != nil {
		return c.read.raw, nil
	}
	return encodeJSON(append([]T{}, c.Get()...))
}

// Topic is a state field that carries messages from one superstep to the next (LangGraph's Topic): a node reads what
// the superstep before published. With the tag `superstep:"accumulate"` it keeps everything ever published.
type Topic[T any] struct {
	read  *stored[[]T]
	local *change[[]T]
}

// Get returns what the task read, followed by what this node published. The slice is the caller's. A stored value that
// is not a list of T fails the task with a *[StateError] after the node returned.
func (c Topic[T]) Get() []T {
	out := slices.Clone(c.read.get())
	for _, w := range c.local.inOrder() {
		out = append(out, w.value...)
	}
	return out
}

// Publish writes values for the next superstep. Without a value it writes nothing. They are encoded when the node
// returns.
func (c *Topic[T]) Publish(values ...T) {
	if len(values) > 0 {
		c.local = &change[[]T]{before: c.local, value: slices.Clone(values)}
	}
}

// IsZero reports whether the topic was neither read nor written; the json option omitzero follows it.
func (c Topic[T]) IsZero() bool { return c.read == nil && c.local == nil }

// String returns the values as fmt prints them.
func (c Topic[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the values as a list; it is never null.
func (c Topic[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON publishes the elements of a JSON array.
func (c *Topic[T]) UnmarshalJSON(data []byte) error {
	var values []T
	if err := decodeJSON(data, &values); err != nil {
		return err
	}
	c.Publish(values...)
	return nil
}

func (c *Topic[T]) declare(name string, o fieldOptions) (declaration, error) {
	if o.unguarded {
		return declaration{}, errUnguarded
	}
	t := reflect.TypeFor[[]T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindTopic, Accumulate: o.accumulate},
		value: t, update: t,
		check: checkUpdate[[]T]('['),
	}, nil
}

func (c *Topic[T]) bind(s *scope, field string, raw pregel.Value) {
	*c = Topic[T]{read: &stored[[]T]{raw: raw, field: field, scope: s}}
}

func (c *Topic[T]) load() { c.read.get() }

// written is a list even for one value: the engine takes lists apart by one level, so a T that is itself a list stays
// whole.
func (c *Topic[T]) written() ([]pregel.Write, error) {
	var all []T
	for _, w := range c.local.inOrder() {
		all = append(all, w.value...)
	}
	if all == nil {
		return nil, nil
	}
	raw, err := encodeJSON(all)
	return []pregel.Write{{Value: raw}}, err
}

func (c Topic[T]) encode() (pregel.Value, error) {
	if c.local == nil && c.read != nil {
		return c.read.raw, nil
	}
	return encodeJSON(append([]T{}, c.Get()...))
}
