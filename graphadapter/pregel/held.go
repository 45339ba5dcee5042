package pregel

import (
	"bytes"
	"slices"
	"sync"
)

// Held is a value as a channel holds it. It is immutable, and none when zero. The versions of a long list that grows share their
// memory: to append to one costs what is appended, not what is there. The text of such a version is made when [Held.Value] is
// first asked for it. It is safe for concurrent use.
type Held struct {
	text  Value  // the value; of a list that has grown all of it but the closing bracket
	grown *grown // nil: text is the value
}

// grown is one version of a list that has grown.
type grown struct {
	room  *room
	once  sync.Once
	whole Value
}

// room is memory that versions of a list share: each has the first bytes of it. Only the longest is appended to in place. A
// list that goes on from an earlier one in another way has a room of its own; one that goes on in the same way, as when a
// workflow does what its activity did, has the same memory.
type room struct {
	mu   sync.Mutex
	text Value // of the longest

	messages messageIndex // of a list that the messages reducer has grown
}

// Hold returns a value to be held.
func Hold(v Value) Held { return Held{text: v} }

// HoldAll returns values to be held.
func HoldAll(values map[string]Value) map[string]Held {
	held := make(map[string]Held, len(values))
	//workflowcheck:ignore A map is made of a map.
	for name, v := range values {
		held[name] = Hold(v)
	}
	return held
}

// IsNone reports whether there is no value.
func (h Held) IsNone() bool { return h.text == nil }

// Len returns the value's size in bytes.
func (h Held) Len() int {
	if h.grown != nil {
		return len(h.text) + 1
	}
	return len(h.text)
}

// Value returns the value, nil for none.
func (h Held) Value() Value {
	if h.grown == nil {
		return h.text
	}
	h.grown.once.Do(func() { h.grown.whole = slices.Concat(h.text, emptyList[1:]) })
	return h.grown.whole
}

// String returns the value as text.
func (h Held) String() string { return string(h.Value()) }

// MarshalJSON returns the value, null for none.
func (h Held) MarshalJSON() ([]byte, error) { return orNull(h.Value()), nil }

// UnmarshalJSON holds a copy of the text.
func (h *Held) UnmarshalJSON(text []byte) error {
	*h = Hold(bytes.Clone(text))
	return nil
}

// open is the text but for its last byte, which closes a list.
func (h Held) open() (text Value, last byte) {
	if h.grown != nil || len(h.text) == 0 {
		return h.text, ']'
	}
	n := len(h.text) - 1
	return h.text[:n], h.text[n]
}

// Beyond returns the elements that a list has behind those of an earlier one, as a list; nil when both are the same value. It
// reports false when h is no longer version of before. Versions that share their memory are not compared.
func (h Held) Beyond(before Held) (more Value, ok bool) {
	text, last := h.open()
	had, end := before.open()
	switch {
	case last != end || !bytes.HasPrefix(text, had): // which looks at no byte twice: the same place in memory is equal
		return nil, false
	case len(text) == len(had):
		return nil, true
	case last != ']' || !isList(text) || len(had) < len(emptyList) || text[len(had)] != ',':
		return nil, false
	}
	return slices.Concat(emptyList[:1], text[len(had)+1:], emptyList[1:]), true
}

func (h Held) isList() bool { return isList(h.text) }

// is reports whether both are at the same place in memory, which they never change.
func (h Held) is(other Held) bool {
	return len(h.text) == len(other.text) && h.grown == other.grown && (len(h.text) == 0 || &h.text[0] == &other.text[0])
}

// equal reports whether both are the same value, or none.
func (h Held) equal(other Held) bool { return h.is(other) || bytes.Equal(h.Value(), other.Value()) }

// whole are the values of what is held.
func whole(held map[string]Held) map[string]Value {
	if held == nil {
		return nil
	}
	out := make(map[string]Value, len(held))
	//workflowcheck:ignore A map is made of a map.
	for name, h := range held {
		out[name] = h.Value()
	}
	return out
}

// with returns a list with more lists behind it. All of them must be arrays.
func (h Held) with(lists []Value) Held {
	if h.grown == nil {
		joined := joinLists(append([]Value{h.text}, lists...)...)
		if len(joined) <= maxPlain {
			return Hold(joined)
		}
		text := joined[: len(joined)-1 : len(joined)-1]
		return Held{text: text, grown: &grown{room: &room{text: text}}}
	}
	more := joinLists(lists...)
	if len(more) == len(emptyList) {
		return h
	}
	more = more[:len(more)-1]
	more[0] = ','
	r := h.grown.room
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(h.text)
	if bytes.HasPrefix(r.text[n:], more) {
		return Held{text: r.text[:n+len(more)], grown: &grown{room: r}}
	}
	text := h.text
	if len(r.text) != n { // another one has been made of it
		r, text = &room{}, slices.Clip(text)
	}
	r.text = append(text, more...)
	return Held{text: r.text, grown: &grown{room: r}}
}
