package pregel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// removeAll is the id that removes every message before it (LangGraph's REMOVE_ALL_MESSAGES).
const removeAll = "__remove_all__"

// reduceMessages is LangGraph's add_messages: a known id replaces in place, an unknown one appends, a removal deletes,
// and removing all drops everything before the last such marker.
//
// Messages have ids before they come here, see messageNames. One that has none all the same, as in a default value, gets one from its
// place and content.
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
