package pregel

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

// messagesReducer is the name of the reducer whose channels hold messages.
const messagesReducer = "messages/v1"

// messageNames gives ids to messages that came without one: the first message of a place is number 1. The same place in the same
// thread gives the same ids, however often it is replayed; no two places of any threads share an id.
type messageNames struct {
	place []string
	given int
}

// namesIn begins the ids of a task's messages, or of another place that brings messages.
func namesIn(origin string, place ...string) *messageNames {
	return &messageNames{place: append([]string{origin}, place...)}
}

// names begins the ids of the messages that a task writes.
func (t *Task) names() *messageNames { return namesIn(t.Origin, "task", t.Key()) }

// next returns one more id.
func (n *messageNames) next() string {
	n.given++
	text := make([]byte, 0, 128)
	for _, part := range n.place {
		text = append(appendQuoted(text, part), ',')
	}
	sum := sha256.Sum256(text)
	return "m-" + hex.EncodeToString(sum[:10]) + "-" + itoa(n.given)
}

// complete returns the writes with an id in each message. The writes given stay as they are.
func (n *messageNames) complete(p *Program, writes []Write) []Write {
	out := writes
	for i, w := range writes {
		at, known := p.index[w.Channel]
		if !known || at >= p.state || !p.channels[at].holdsMessages() {
			continue
		}
		named, missing := n.list(w.Value)
		if !missing {
			continue
		}
		if &out[0] == &writes[0] {
			out = slices.Clone(writes)
		}
		out[i].Value = named
	}
	return out
}

// list returns a list of messages, or one message, with an id in each; missing reports whether an id was missing. A value that
// is no message stays as it is: the reducer refuses it.
func (n *messageNames) list(v Value) (_ Value, missing bool) {
	if v = bytes.TrimSpace(v); len(v) == 0 {
		return v, false
	}
	if v[0] == '{' {
		return n.message(v)
	}
	var raws []Value
	if v[0] != '[' || json.Unmarshal(v, &raws) != nil {
		return v, false
	}
	out := make([][]byte, len(raws))
	for i, raw := range raws {
		named, without := n.message(raw)
		out[i], missing = named, missing || without
	}
	if !missing {
		return v, false
	}
	return slices.Concat(emptyList[:1], bytes.Join(out, []byte(",")), emptyList[1:]), true
}

// message returns a message with an id. A removal says itself which message it means.
func (n *messageNames) message(raw Value) (_ Value, missing bool) {
	m, err := parseMessage(raw)
	if err != nil || m.id != "" || m.remove {
		return raw, false
	}
	return withID(raw, n.next()), true
}

// withID returns an object with that id, its other members in their order.
func withID(object Value, id string) Value {
	out := append(make(Value, 0, len(object)+len(id)+8), '{')
	EachMember(object, func(name string, v Value) {
		if name != "id" {
			out = append(append(append(appendQuoted(out, name), ':'), v...), ',')
		}
	})
	return append(append(out, `"id":`...), append(appendQuoted(nil, id), '}')...)
}
