package pregel

import (
	"bytes"
	"fmt"
	"slices"
)

// The engine's own channels stand after the graph's: one for the input, one for pending Sends, one that triggers each
// node, and one for each join.
const (
	startChannel  = "__start__"
	tasksChannel  = "__pregel_tasks"
	triggerPrefix = "branch:to:"
	joinPrefix    = "join:"
)

// rule is a compiled channel's behaviour, kinds of the Spec and the engine's own together.
type rule uint8

const (
	ruleLast rule = iota
	ruleAny
	ruleEphemeral
	ruleUntracked
	ruleTopic
	ruleReduce
	ruleSends
	ruleTrigger      // an unguarded ephemeral null: wakes a node
	ruleTriggerAfter // wakes a deferred node once nothing else is left (LastValueAfterFinish)
	ruleJoin         // available once every source wrote its name (NamedBarrierValue)
	ruleJoinAfter    // the same for a deferred node (NamedBarrierValueAfterFinish)
)

// ruleOf are the rules of the Spec's kinds.
var ruleOf = map[Kind]rule{KindLast: ruleLast, KindAny: ruleAny, KindEphemeral: ruleEphemeral, KindUntracked: ruleUntracked,
	KindTopic: ruleTopic, KindReduce: ruleReduce}

// channel is one compiled channel.
type channel struct {
	name       string
	rule       rule
	guard      bool
	accumulate bool
	reducer    Reducer
	zero       Value
	sources    []string // a join's
	wakes      []int    // the nodes that this channel triggers
}

// cell is a channel's value in one checkpoint. It is copied, never changed in place.
type cell struct {
	value Held
	rest  *cellRest    // nil for none
	sum   *valueDigest // of the value, or of one before it; nil for none
}

// cellRest is what few cells have. It is replaced, never changed.
type cellRest struct {
	sends    []Send
	seen     []int // a join's sources that have written, sorted
	finished bool  // nothing else was left to run
}

func (s *cell) all() cellRest {
	if s.rest == nil {
		return cellRest{}
	}
	return *s.rest
}

func (s *cell) setAll(r cellRest) {
	if s.rest = nil; len(r.sends) > 0 || len(r.seen) > 0 || r.finished {
		some := r
		s.rest = &some
	}
}

func (s *cell) sends() []Send { return s.all().sends }

func (s *cell) setSends(sends []Send) {
	r := s.all()
	r.sends = sends
	s.setAll(r)
}

func (s *cell) seen() []int { return s.all().seen }

func (s *cell) setSeen(seen []int) {
	r := s.all()
	r.seen = seen
	s.setAll(r)
}

func (s *cell) finished() bool { return s.all().finished }

func (s *cell) setFinished(is bool) {
	r := s.all()
	r.finished = is
	s.setAll(r)
}

// Send is a pending task: node Node with input Arg.
type Send struct {
	Node string `json:"send"`
	Arg  Value  `json:"arg"`
	Timeouts
}

// update is one write to a channel, as Apply sees it.
type update struct {
	value     Value
	overwrite bool
	send      *Send
	source    int // a join's writer, as an index into its sources
	// reduced is what the writes to this channel of the same task, of which this is the first, were seen to come to; nil for none.
	reduced *reduced
}

// reduced is what a reducing channel came to with the writes of one task, none of which overwrites.
type reduced struct {
	channel int
	from    Held
	updates []Value
	to      Held
}

// reduces notes what is about to be reduced; nil where that is short, or not reduced. The writes are copied: who made them may
// still have them.
func (c *channel) reduces(from Held, updates []update) *reduced {
	size := from.Len()
	for _, u := range updates {
		if size += len(u.value); u.overwrite {
			return nil
		}
	}
	if c.rule != ruleReduce || size <= maxPlain {
		return nil
	}
	r := &reduced{from: from}
	for _, u := range updates {
		r.updates = append(r.updates, slices.Clone(u.value))
	}
	return r
}

// is reports whether it is what these updates make of that value. What a task writes is small beside it, and may have been copied
// on the way here.
func (r *reduced) is(from Held, updates []update) bool {
	return r != nil && r.from.is(from) &&
		slices.EqualFunc(r.updates, updates, func(a Value, b update) bool { return !b.overwrite && bytes.Equal(a, b.value) })
}

func (c *channel) holdsMessages() bool {
	return c.rule == ruleReduce && c.reducer.Name() == messagesReducer
}

func (c *channel) available(s *cell) bool {
	switch c.rule {
	case ruleSends:
		return len(s.sends()) > 0
	case ruleJoin:
		return len(s.seen()) == len(c.sources)
	case ruleJoinAfter:
		return s.finished() && len(s.seen()) == len(c.sources)
	case ruleTriggerAfter:
		return !s.value.IsNone() && s.finished()
	default:
		return !s.value.IsNone()
	}
}

// apply takes the writes of one superstep; changed reports whether the channel gets a new version.
func (c *channel) apply(graph string, s *cell, updates []update) (changed bool, err error) {
	switch c.rule {
	case ruleLast:
		if len(updates) != 1 {
			return false, c.conflict(graph)
		}
		s.value = Hold(updates[0].value)
	case ruleEphemeral, ruleUntracked:
		if c.guard && len(updates) != 1 {
			return false, c.conflict(graph)
		}
		s.value = Hold(updates[len(updates)-1].value)
	case ruleAny, ruleTrigger:
		s.value = Hold(updates[len(updates)-1].value)
	case ruleTriggerAfter:
		s.value = Hold(updates[len(updates)-1].value)
		s.setFinished(false)
	case ruleTopic:
		return c.applyTopic(s, updates), nil
	case ruleReduce:
		return true, c.applyReduce(graph, s, updates)
	case ruleSends:
		sends := make([]Send, len(updates))
		for i, u := range updates {
			sends[i] = *u.send
		}
		s.setSends(sends)
	case ruleJoin, ruleJoinAfter:
		return c.applyJoin(s, updates), nil
	}
	return true, nil
}

func (c *channel) conflict(graph string) error {
	return &InvalidUpdateError{Graph: graph, Channel: c.name, Code: "INVALID_CONCURRENT_GRAPH_UPDATE",
		Message: "it can take only one value a superstep: use a reducing channel to combine values, " +
			"or let one node write it"}
}

func (c *channel) applyTopic(s *cell, updates []update) bool {
	had, before := !s.value.IsNone(), Hold(emptyList)
	if c.accumulate && had {
		before = s.value
	}
	lists := make([]Value, 0, len(updates))
	for _, u := range updates {
		if isList(u.value) {
			lists = append(lists, u.value)
			continue
		}
		lists = append(lists, Value("["+string(u.value)+"]"))
	}
	joined := before.with(lists)
	if joined.Len() == len(emptyList) {
		s.value = Held{}
		return had
	}
	grew := !c.accumulate || joined.Len() != s.value.Len()
	s.value = joined
	return grew
}

func (c *channel) applyReduce(graph string, s *cell, updates []update) (err error) {
	if known := updates[0].reduced; known.is(s.value, updates) {
		s.value = known.to
		return nil
	}
	overwrite := -1
	for i, u := range updates {
		if !u.overwrite {
			continue
		}
		if overwrite >= 0 {
			return &InvalidUpdateError{Graph: graph, Channel: c.name, Code: "INVALID_CONCURRENT_GRAPH_UPDATE",
				Message: "it can receive only one overwrite a superstep"}
		}
		overwrite = i
	}
	if overwrite >= 0 {
		s.value = Hold(updates[overwrite].value)
		return nil
	}
	values := make([]Value, len(updates))
	for i, u := range updates {
		values[i] = u.value
	}
	current := s.value
	if current.IsNone() {
		current = Hold(c.zero)
	}
	reduced, err := c.reduce(current, values)
	if err != nil {
		return &InvalidUpdateError{Graph: graph, Channel: c.name, Message: "reducer " + c.reducer.Name(), Cause: err}
	}
	s.value = reduced
	return nil
}

// zeroOf is a reducer's zero value; of one that panics it is no JSON value.
func zeroOf(r Reducer) (v Value) {
	defer func() {
		if p := recover(); p != nil {
			v = Value(fmt.Sprintf("panic: %v", p))
		}
	}()
	return r.Zero()
}

// reduce turns a reducer's panic into an error: a custom reducer is user code, and it must not take the run with it. What
// it appends to the current value must not end up in the checkpoint that holds that.
func (c *channel) reduce(current Held, values []Value) (_ Held, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	f, builtin := c.reducer.(fold)
	if builtin && f.grow != nil {
		return f.grow(current, values)
	}
	v, err := c.reducer.Reduce(slices.Clip(current.Value()), values)
	if !builtin && err == nil {
		v, err = compact(v)
	}
	return Hold(v), err
}

func (c *channel) applyJoin(s *cell, updates []update) (grew bool) {
	for _, u := range updates {
		at, known := slices.BinarySearch(s.seen(), u.source)
		if known {
			continue
		}
		s.setSeen(slices.Insert(slices.Clone(s.seen()), at, u.source))
		grew = true
	}
	return grew
}

// pass tells a channel that a superstep went by without a write to it.
func (c *channel) pass(s *cell) (changed bool) {
	switch c.rule {
	case ruleAny, ruleEphemeral, ruleTrigger:
		changed = !s.value.IsNone()
		s.value = Held{}
	case ruleTopic:
		if !c.accumulate {
			changed = !s.value.IsNone()
			s.value = Held{}
		}
	case ruleSends:
		changed = len(s.sends()) > 0
		s.setSends(nil)
	}
	return changed
}

// consume tells a channel that the node it triggered ran.
func (c *channel) consume(s *cell) (changed bool) {
	switch {
	case c.rule == ruleTriggerAfter && s.finished():
		s.value = Held{}
		s.setFinished(false)
	case c.rule == ruleJoin && c.available(s):
		s.setSeen(nil)
	case c.rule == ruleJoinAfter && c.available(s):
		s.setSeen(nil)
		s.setFinished(false)
	default:
		return false
	}
	return true
}

// finish tells a channel that nothing else is left to run: it wakes deferred nodes.
func (c *channel) finish(s *cell) (changed bool) {
	switch {
	case c.rule == ruleTriggerAfter && !s.finished() && !s.value.IsNone():
	case c.rule == ruleJoinAfter && !s.finished() && len(s.seen()) == len(c.sources):
	default:
		return false
	}
	s.setFinished(true)
	return true
}
