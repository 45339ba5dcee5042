package superstep

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// List is a state field that nodes append to (reducer "append/v1"). Appends of one superstep are in task order: nodes
// by name, then Sends in the order they were made.
type List[T any] struct {
	field[[]T, []T]
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
		c.write(slices.Clone(elements), false)
	}
}

// Overwrite replaces the whole list and drops what siblings append in the same superstep; two overwrites of a channel
// in one superstep are an error of the run. What this node appends afterwards is part of the replacement.
func (c *List[T]) Overwrite(elements []T) {
	c.write(slices.Clone(elements), true)
}

// String returns the list as fmt prints it.
func (c List[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the list with this node's own writes; it is never null.
func (c List[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON appends the elements of a JSON array.
func (c *List[T]) UnmarshalJSON(data []byte) error {
	return unmarshal(data, func(read []T) { c.Append(read...) })
}

func (c *List[T]) bind(s *scope, name string, raw pregel.Held) {
	c.field.bind(s, name, raw)
	c.read.copies = true
}

func (c *List[T]) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[[]T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: "append/v1"},
		value: t, update: t,
		check: jsonfit.CheckUpdate[[]T]('['),
	}, o.none()
}

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
	raw, err := jsonfit.Encode(all)
	return []pregel.Write{{Value: raw, Overwrite: overwritten(changes)}}, err
}

func (c List[T]) encode() (pregel.Value, error) {
	return c.encoded(func() []T { return append([]T{}, c.Get()...) })
}

// Topic is a state field that carries messages from one superstep to the next (LangGraph's Topic): a node reads what
// the superstep before published. With the tag `superstep:"accumulate"` it keeps everything ever published.
type Topic[T any] struct {
	field[[]T, []T]
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
		c.write(slices.Clone(values), false)
	}
}

// String returns the values as fmt prints them.
func (c Topic[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the values as a list; it is never null.
func (c Topic[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON publishes the elements of a JSON array.
func (c *Topic[T]) UnmarshalJSON(data []byte) error {
	return unmarshal(data, func(read []T) { c.Publish(read...) })
}

func (c *Topic[T]) bind(s *scope, name string, raw pregel.Held) {
	c.field.bind(s, name, raw)
	c.read.copies = true
}

func (c *Topic[T]) declare(name string, o fieldOptions) (declaration, error) {
	if o.unguarded {
		return declaration{}, errUnguarded
	}
	t := reflect.TypeFor[[]T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindTopic, Accumulate: o.accumulate},
		value: t, update: t,
		check: jsonfit.CheckUpdate[[]T]('['),
	}, nil
}

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
	raw, err := jsonfit.Encode(all)
	return []pregel.Write{{Value: raw}}, err
}

func (c Topic[T]) encode() (pregel.Value, error) {
	return c.encoded(func() []T { return append([]T{}, c.Get()...) })
}

// Map is a state field that merges what nodes put into it, key by key (reducer "merge/v1"). When two nodes put the
// same key in one superstep, the later one in task order wins.
type Map[T any] struct {
	field[map[string]T, map[string]T]
}

// Get returns the map with this node's own writes; it is never nil. The map is the caller's: changing it changes
// nothing here, though what its values point to is shared by the copies of this state. A stored value that is not a
// map of T fails the task with a *[StateError] after the node returned.
func (c Map[T]) Get() map[string]T {
	changes := c.local.inOrder()
	out := map[string]T{}
	if !overwritten(changes) {
		maps.Copy(out, c.read.get())
	}
	for _, w := range changes {
		maps.Copy(out, w.value)
	}
	return out
}

// Put writes one key. It is encoded when the node returns.
func (c *Map[T]) Put(key string, v T) {
	c.write(map[string]T{key: v}, false)
}

// Overwrite replaces the whole map and drops what siblings put in the same superstep; two overwrites of a channel in
// one superstep are an error of the run. What this node puts afterwards is part of the replacement.
func (c *Map[T]) Overwrite(m map[string]T) {
	c.write(maps.Clone(m), true)
}

// String returns the map as fmt prints it, in the order of its keys.
func (c Map[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the map with this node's own writes; it is never null.
func (c Map[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON puts every key of a JSON object.
func (c *Map[T]) UnmarshalJSON(data []byte) error {
	var m map[string]T
	if err := jsonfit.Decode(data, &m); err != nil {
		return err
	}
	if m != nil {
		c.write(m, false)
	}
	return nil
}

func (c *Map[T]) bind(s *scope, name string, raw pregel.Held) {
	c.field.bind(s, name, raw)
	c.read.copies = true
}

func (c *Map[T]) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[map[string]T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: "merge/v1"},
		value: t, update: t,
		check: jsonfit.CheckUpdate[map[string]T]('{'),
	}, o.none()
}

// written makes one write of all puts: merging is associative, and a write each would grow the run's history.
func (c *Map[T]) written() ([]pregel.Write, error) {
	changes := c.local.inOrder()
	if len(changes) == 0 {
		return nil, nil
	}
	all := map[string]T{}
	for _, w := range changes {
		maps.Copy(all, w.value)
	}
	raw, err := jsonfit.Encode(all)
	return []pregel.Write{{Value: raw, Overwrite: overwritten(changes)}}, err
}

func (c Map[T]) encode() (pregel.Value, error) { return c.encoded(c.Get) }

// Number is what a [Sum] adds.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum is a state field that adds up what nodes write to it (reducer "sum/v1"), starting from 0. The engine adds
// integers exactly, whatever their size; a total that does not fit T fails the task that reads it.
type Sum[T Number] struct {
	field[T, T]
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
func (c *Sum[T]) Add(v T) { c.write(v, false) }

// Overwrite replaces the total and drops what siblings add in the same superstep; two overwrites of a channel in one
// superstep are an error of the run. What this node adds afterwards is part of the replacement.
func (c *Sum[T]) Overwrite(v T) { c.write(v, true) }

// String returns the total as fmt prints it.
func (c Sum[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the total with this node's own writes.
func (c Sum[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON adds a JSON number.
func (c *Sum[T]) UnmarshalJSON(data []byte) error {
	return unmarshal(data, c.Add)
}

func (c *Sum[T]) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: "sum/v1"},
		value: t, update: t,
		check: jsonfit.CheckUpdate[T]('0'),
	}, o.none()
}

// written keeps one write for each Add: the engine adds without overflow, which T may not.
func (c *Sum[T]) written() ([]pregel.Write, error) {
	changes := c.local.inOrder()
	if overwritten(changes) {
		raw, err := jsonfit.Encode(c.Get())
		return []pregel.Write{{Value: raw, Overwrite: true}}, err
	}
	return eachWritten(changes)
}

func (c Sum[T]) encode() (pregel.Value, error) { return c.encoded(c.Get) }
