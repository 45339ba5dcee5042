package superstep

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/message"
)

// What the messages reducer takes as removals, as LangGraph stores them.
const (
	removeRole  = "remove"
	removeAllID = "__remove_all__"

	messagesReducer = "messages/v1"
)

// Messages is a state field that holds a conversation (LangGraph's add_messages, reducer "messages/v1"): a message
// whose id is already there replaces the old one in its place, any other is appended.
type Messages struct {
	field[[]message.Message, []messageChange]
	// task is the scope of the task whose state this is; nil in a state of the node's or caller's own.
	task *scope
}

// messageChange is one element of an update: a message, or a removal by id.
type messageChange struct {
	message message.Message
	remove  string
}

// MarshalJSON returns what the reducer takes.
func (m messageChange) MarshalJSON() ([]byte, error) {
	if m.remove != "" {
		return jsonfit.Encode(map[string]string{"role": removeRole, "id": m.remove})
	}
	return jsonfit.Encode(m.message)
}

// Get returns the messages with this node's own writes. The slice is the caller's. A stored value that is not a list
// of messages, and the removal of a message that is not there, fail the task with a *[StateError] after the node
// returned.
func (c Messages) Get() []message.Message {
	if c.local == nil {
		return slices.Clone(c.read.get())
	}
	raw, err := c.folded(unnamed())
	var out []message.Message
	if err == nil {
		err = jsonfit.Decode(raw, &out)
	}
	if err != nil && c.read != nil {
		c.read.scope.fail(&StateError{Graph: c.read.scope.graph, Node: c.read.scope.node, Field: c.read.field,
			Type: "superstep.Messages", Cause: err})
	}
	for i := range out {
		if strings.HasPrefix(out[i].ID, noName) {
			out[i].ID = ""
		}
	}
	return out
}

// Last returns the last message, and false when there is none.
func (c Messages) Last() (message.Message, bool) {
	all := c.Get()
	if len(all) == 0 {
		return message.Message{}, false
	}
	return all[len(all)-1], true
}

// Append writes messages: one whose id is already there replaces that one in its place, even if this node removed it
// before, any other comes last.
//
// A message without an id gets one: in the state that a node was given at once, and the same whenever the task is
// attempted again, so that what was streamed of an earlier attempt is replaced; in a state of its own (for
// [Command].Update, a Send or an input) when that is handed over. Two tasks never give the same.
func (c *Messages) Append(messages ...message.Message) {
	if len(messages) == 0 {
		return
	}
	update := make([]messageChange, len(messages))
	for i, m := range messages {
		if m.ID == "" && c.task != nil {
			m.ID = c.task.messageID()
		}
		update[i].message = m
	}
	c.write(update, false)
}

// Remove deletes the message with that id. Removing a message that is not there is an error of the run.
func (c *Messages) Remove(id string) { c.write([]messageChange{{remove: id}}, false) }

// Clear deletes every message written so far. Those that siblings write later in task order stay.
func (c *Messages) Clear() { c.write([]messageChange{{remove: removeAllID}}, false) }

// String returns one line for each message: its role and its text.
func (c Messages) String() string {
	var out []byte
	for i, m := range c.Get() {
		if i > 0 {
			out = append(out, '\n')
		}
		out = fmt.Appendf(out, "%s: %s", m.Role, m.Content)
	}
	return string(out)
}

// MarshalJSON returns the messages with this node's own writes; it is never null.
func (c Messages) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON appends the messages of a JSON array.
func (c *Messages) UnmarshalJSON(data []byte) error {
	return unmarshal(data, func(read []message.Message) { c.Append(read...) })
}

func (c *Messages) declare(name string, o fieldOptions) (declaration, error) {
	t := reflect.TypeFor[[]message.Message]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: messagesReducer},
		value: t, update: t,
		check: func(raw pregel.Value) error { return message.CheckMessages(raw) },
	}, o.none()
}

func (c *Messages) bind(s *scope, field string, raw pregel.Held) {
	c.field.bind(s, field, raw)
	c.read.copies, c.task = true, s
}

// within is bind for a state without the channel: its task gives the ids all the same.
func (c *Messages) within(s *scope) { c.task = s }

// name gives the messages that have no id one. The changes themselves are shared with copies of the state.
func (c *Messages) name(id func() string) {
	var local *change[[]messageChange]
	for _, w := range c.local.inOrder() {
		update := slices.Clone(w.value)
		for i := range update {
			if m := &update[i].message; update[i].remove == "" && m.ID == "" {
				m.ID = id()
			}
		}
		local = &change[[]messageChange]{before: local, value: update}
	}
	c.local = local
}

// noName begins the ids of messages that only have them while they are folded.
const noName = "\x00"

func unnamed() func() string {
	n := 0
	return func() string { n++; return noName + strconv.Itoa(n) }
}

// written is one update, as LangGraph's nodes return one: in it, a message that is removed and comes again stays in its
// place.
func (c *Messages) written() ([]pregel.Write, error) {
	if c.local == nil {
		return nil, nil
	}
	var all []messageChange
	for _, w := range c.local.inOrder() {
		all = append(all, w.value...)
	}
	raw, err := jsonfit.Encode(all)
	return []pregel.Write{{Value: raw}}, err
}

// folded applies the changes with the engine's own reducer: the node sees what the run will see.
func (c Messages) folded(id func() string) (pregel.Value, error) {
	c.name(id)
	writes, err := c.written()
	if err != nil {
		return nil, err
	}
	var current pregel.Value
	if c.read != nil {
		current = c.read.raw.Value()
	}
	reducer, _ := pregel.Builtin(messagesReducer)
	return reducer.Reduce(current, []pregel.Value{writes[0].Value})
}

func (c Messages) encode() (pregel.Value, error) {
	switch {
	case c.local != nil:
		return c.folded(uuid.NewString)
	case c.read != nil:
		return c.read.raw.Value(), nil
	}
	return pregel.Value("[]"), nil
}
