package pregel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// message is one message of the messages/v1 reducer: any object, known by its id.
type message struct {
	id     string
	remove bool
	raw    Value
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
