package superstep

import (
	"fmt"
	"maps"
	"reflect"

	"superstep.dev/graphadapter/pregel"
)

// Map is a state field that merges what nodes put into it, key by key (reducer "merge/v1"). When two nodes put the
// same key in one superstep, the later one in task order wins.
type Map[T any] struct {
	read  *stored[map[string]T]
	local *change[map[string]T]
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
	c.local = &change[map[string]T]{before: c.local, value: map[string]T{key: v}}
}

// Overwrite replaces the whole map and drops what siblings put in the same superstep; two overwrites of a channel in
// one superstep are an error of the run. What this node puts afterwards is part of the replacement.
func (c *Map[T]) Overwrite(m map[string]T) {
	c.local = &change[map[string]T]{before: c.local, value: maps.Clone(m), overwrite: true}
}

// IsZero reports whether the map was neither read nor written; the json option omitzero follows it.
func (c Map[T]) IsZero() bool { return c.read == nil && c.local == nil }

// String returns the map as fmt prints it, in the order of its keys.
func (c Map[T]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the map with this node's own writes; it is never null.
func (c Map[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON puts every key of a JSON object.
func (c *Map[T]) UnmarshalJSON(data []byte) error {
	var m map[string]T
	if err := decodeJSON(data, &m); err != nil {
		return err
	}
	if m != nil {
		c.local = &change[map[string]T]{before: c.local, value: m}
	}
	return nil
}

func (c *Map[T]) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[map[string]T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: "merge/v1"},
		value: t, update: t,
		check: checkUpdate[map[string]T]('{'),
	}, o.none()
}

func (c *Map[T]) bind(s *scope, field string, raw pregel.Value) {
	*c = Map[T]{read: &stored[map[string]T]{raw: raw, field: field, scope: s}}
}

func (c *Map[T]) load() { c.read.get() }

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
	raw, err := encodeJSON(all)
	return []pregel.Write{{Value: raw, Overwrite: overwritten(changes)}}, err
}

func (c Map[T]) encode() (pregel.Value, error) {
	if c.local == nil && c.read != nil {
		return c.read.raw, nil
	}
	return encodeJSON(c.Get())
}
