package pregel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// removeAll is the id that removes every message before it (LangGraph's REMOVE_ALL_MESSAGES).
const removeAll = "__remove_all__"

// message is one message of the messages/v1 reducer: any object, known by its id.
type message struct {
	id     string
	remove bool
	raw    Value
}

// reduceMessages is LangGraph's add_messages: a known id replaces in place, an unknown one appends, a removal deletes,
// and removing all drops everything before the last such marker.
//
// A message without an id gets one from its place and content, not from randomness: reducers are replayed.
func reduceMessages(current Held, updates []Value) (_ Held, err error) {
	for _, u := range updates {
		if current, err = addMessages(current, u); err != nil {
			return Held{}, fmt.Errorf("messages/v1: %w", err)
		}
	}
	return current, nil
}

// addMessages appends where all that an update does is to add messages, which costs what is added. Anything else writes the list
// anew. Which of the two follows from the values alone.
func addMessages(left Held, right Value) (Held, error) {
	old := left.messages()
	if !old.plain {
		return mergeMessages(left.Value(), right)
	}
	taken := map[string]bool{}
	added, err := parseMessages(right, old.count, func(id string) bool { return taken[id] || old.has(id) })
	if err != nil {
		return Held{}, err
	}
	for _, m := range added {
		if m.remove || taken[m.id] || old.has(m.id) {
			return mergeMessages(left.Value(), right)
		}
		taken[m.id] = true
	}
	more, err := encodeMessages(added, nil)
	if err != nil {
		return Held{}, err
	}
	return left.with([]Value{more}), nil
}

func mergeMessages(left, right Value) (Held, error) {
	place := map[string]int{}
	taken := func(id string) bool { _, is := place[id]; return is }
	old, err := parseMessages(left, 0, taken)
	if err != nil {
		return Held{}, err
	}
	for i, m := range old {
		place[m.id] = i
	}
	added, err := parseMessages(right, len(old), taken)
	if err != nil {
		return Held{}, err
	}
	for i := len(added) - 1; i >= 0; i-- {
		if added[i].remove && added[i].id == removeAll {
			v, err := encodeMessages(added[i+1:], nil)
			return Hold(v), err
		}
	}
	removed := map[string]bool{}
	for _, m := range added {
		at, known := place[m.id]
		switch {
		case m.remove && !known:
			return Held{}, fmt.Errorf("cannot remove the message %q: no message has that id", m.id)
		case m.remove:
			removed[m.id] = true
		case known:
			delete(removed, m.id)
			old[at] = m
		default:
			place[m.id] = len(old)
			old = append(old, m)
		}
	}
	v, err := encodeMessages(old, removed)
	return Hold(v), err
}

// parseMessages reads a list of messages, or one. The first has that place; taken says which ids others have.
func parseMessages(v Value, place int, taken func(id string) bool) ([]message, error) {
	if !isList(v) {
		v = joinLists(Value("[" + string(v) + "]"))
	}
	var raws []Value
	if err := json.Unmarshal(v, &raws); err != nil {
		return nil, err
	}
	out, own := make([]message, 0, len(raws)), map[string]bool{}
	for i, raw := range raws {
		m, err := parseMessage(raw)
		if err == nil && m.id == "" {
			m, err = nameMessage(raw, place+i, func(id string) bool { return own[id] || taken(id) })
		}
		if err != nil {
			return nil, err
		}
		own[m.id] = true
		out = append(out, m)
	}
	return out, nil
}

// parseMessage reads a message; its id is empty when it has none.
func parseMessage(raw Value) (message, error) {
	var head struct {
		ID   *string `json:"id"`
		Role string  `json:"role"`
	}
	if len(raw) == 0 || raw[0] != '{' {
		return message{}, fmt.Errorf("takes messages (objects with role and content), got %s", brief(raw))
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return message{}, fmt.Errorf("message %s: %w", brief(raw), err)
	}
	return message{id: *cmp.Or(head.ID, new(string)), remove: head.Role == "remove", raw: raw}, nil
}

// nameMessage gives a message an id that no message has: after a removal a later message can have the place and the content of an
// earlier one.
func nameMessage(raw Value, place int, taken func(id string) bool) (message, error) {
	id := ""
	for try := 0; id == "" || taken(id); try++ {
		sum := sha256.Sum256(append([]byte(strconv.Itoa(place)+":"+strconv.Itoa(try)+":"), raw...))
		id = "m-" + hex.EncodeToString(sum[:8])
	}
	var fields map[string]Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return message{}, err
	}
	fields["id"] = Value(strconv.Quote(id))
	withID, err := json.Marshal(fields)
	return message{id: id, raw: withID}, err
}

func encodeMessages(messages []message, removed map[string]bool) (Value, error) {
	items := make([]Value, 0, len(messages))
	for _, m := range messages {
		if !m.remove && !removed[m.id] {
			items = append(items, m.raw)
		}
	}
	return json.Marshal(items)
}

// heldMessages are the messages of one list.
type heldMessages struct {
	// plain says that each has an id of its own and none is a removal; nothing else is known of a list that is not.
	plain bool
	count int
	index *messageIndex
}

// has reports whether a message of the list has that id.
func (m heldMessages) has(id string) bool {
	m.index.mu.Lock()
	defer m.index.mu.Unlock()
	place, is := m.index.place[id]
	return is && place < m.count
}

// messageIndex says which messages the longest version of a list has. It is made when first asked for, and goes on where it ended
// when the list has grown.
type messageIndex struct {
	mu    sync.Mutex
	place map[string]int // by id
	ends  []int          // by place: where the message ends in the list's text
	other bool           // what comes next is not a plain message
}

// messages finds what the list has. Of one that has grown only what is new is looked at.
func (h Held) messages() heldMessages {
	index := &messageIndex{}
	if h.grown != nil {
		index = &h.grown.room.messages
	}
	text, last := h.open()
	if last != ']' || !isList(text) {
		return heldMessages{}
	}
	index.mu.Lock()
	defer index.mu.Unlock()
	index.read(text)
	count, found := slices.BinarySearch(index.ends, len(text))
	if len(text) == len(emptyList)-1 {
		return heldMessages{plain: true, index: index}
	}
	return heldMessages{plain: found, count: count + 1, index: index}
}

// read goes on to the end of a list's text, or to the first element that is not a plain message.
func (x *messageIndex) read(text Value) {
	at := len(emptyList) - 1
	if n := len(x.ends); n > 0 {
		at = x.ends[n-1] + 1 // behind the comma
	}
	for at < len(text) && !x.other {
		element := text[at:]
		element = element[:valueSize(element)]
		m, err := parseMessage(element)
		if _, twice := x.place[m.id]; err != nil || m.id == "" || m.remove || twice {
			x.other = true
			return
		}
		if x.place == nil {
			x.place = map[string]int{}
		}
		x.place[m.id] = len(x.ends)
		x.ends = append(x.ends, at+len(element))
		at += len(element) + 1
	}
}
