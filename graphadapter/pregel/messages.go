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
func reduceMessages(current Value, updates []Value) (Value, error) {
	for _, u := range updates {
		merged, err := addMessages(current, u)
		if err != nil {
			return nil, fmt.Errorf("messages/v1: %w", err)
		}
		current = merged
	}
	return current, nil
}

func addMessages(left, right Value) (Value, error) {
	taken := map[string]bool{}
	old, err := parseMessages(left, 0, taken)
	if err != nil {
		return nil, err
	}
	added, err := parseMessages(right, len(old), taken)
	if err != nil {
		return nil, err
	}
	for i := len(added) - 1; i >= 0; i-- {
		if added[i].remove && added[i].id == removeAll {
			return encodeMessages(added[i+1:], nil)
		}
	}
	place := make(map[string]int, len(old))
	for i, m := range old {
		place[m.id] = i
	}
	removed := map[string]bool{}
	for _, m := range added {
		at, known := place[m.id]
		switch {
		case m.remove && !known:
			return nil, fmt.Errorf("cannot remove the message %q: no message has that id", m.id)
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
	return encodeMessages(old, removed)
}

func parseMessages(v Value, place int, taken map[string]bool) ([]message, error) {
	if !isList(v) {
		v = joinLists(Value("[" + string(v) + "]"))
	}
	var raws []Value
	if err := json.Unmarshal(v, &raws); err != nil {
		return nil, err
	}
	out := make([]message, 0, len(raws))
	for i, raw := range raws {
		m, err := parseMessage(raw, place+i, taken)
		if err != nil {
			return nil, err
		}
		taken[m.id] = true
		out = append(out, m)
	}
	return out, nil
}

func parseMessage(raw Value, place int, taken map[string]bool) (message, error) {
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
	if head.ID != nil && *head.ID != "" {
		return message{id: *head.ID, remove: head.Role == "remove", raw: raw}, nil
	}
	id := messageID(raw, place, taken)
	var fields map[string]Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return message{}, err
	}
	fields["id"] = Value(strconv.Quote(id))
	withID, err := json.Marshal(fields)
	return message{id: id, raw: withID}, err
}

// messageID makes up an id that no message has: after a removal a later message can have the place and the content of
// an earlier one.
func messageID(raw Value, place int, taken map[string]bool) string {
	for try := 0; ; try++ {
		sum := sha256.Sum256(append([]byte(strconv.Itoa(place)+":"+strconv.Itoa(try)+":"), raw...))
		if id := "m-" + hex.EncodeToString(sum[:8]); !taken[id] {
			return id
		}
	}
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
