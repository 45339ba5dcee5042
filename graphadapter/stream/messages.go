package stream

import (
	"bytes"
	"encoding/json"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// behindMessages is the slot of what follows the messages of an event.
const behindMessages = 1 << 20

// whole is what a message is known by. One without an id is as the node wrote it.
type whole struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	raw  json.RawMessage
}

// messagesIn are the messages of a channel's value or of a write to it: one, or a list.
func messagesIn(v pregel.Value) []whole {
	var raws []json.RawMessage
	if bytes.HasPrefix(v, []byte("{")) || json.Unmarshal(v, &raws) != nil {
		raws = []json.RawMessage{v}
	}
	out := make([]whole, 0, len(raws))
	for _, raw := range raws {
		m := whole{raw: raw}
		if json.Unmarshal(raw, &m) == nil && m.Role != "remove" {
			out = append(out, m)
		}
	}
	return out
}

// markInput notes the messages that a task's node is given: they are no news.
func (b *batch) markInput() {
	t := b.event.Task
	state := t.State
	if t.IsSend() {
		state = nil
		if json.Unmarshal(t.Arg, &state) != nil {
			return // an argument that is no object has no channels
		}
	}
	for channel, v := range state {
		if b.graph.messages[channel] {
			for _, m := range messagesIn(v.Value()) {
				b.shaper.seen[m.ID] = true
			}
		}
	}
}

// written adds the messages that a task wrote, each id once.
func (b *batch) written() {
	if !b.shaper.wanted[Messages] || b.event.Cached {
		return
	}
	slot := 0
	for _, w := range b.event.Writes {
		if !b.graph.messages[w.Channel] {
			continue
		}
		for _, m := range messagesIn(w.Value) {
			if m.ID == "" || !b.shaper.seen[m.ID] {
				b.see(m.ID)
				b.add(slot, Messages, func() any { return []any{m.raw, b.metadata()} })
			}
			slot++
		}
	}
}

// message adds a message, or a piece of one, that a node emitted.
func (b *batch) message() {
	for _, m := range messagesIn(b.event.Value) {
		b.see(m.ID)
	}
	if !b.shaper.wanted[Messages] {
		return
	}
	value := b.event.Value
	if !json.Valid(value) {
		b.put(0, Messages, b.event.Step, []any{value, b.metadata()}) // which says why
		return
	}
	// Of every token there is one, so what is JSON already is not written anew.
	b.chunk(0, Messages, b.event.Step, unescaped(slices.Concat([]byte("["), value, []byte(","), b.metadata(), []byte("]"))))
}

// see notes a message of the event's task.
func (b *batch) see(id string) {
	if id == "" || b.shaper.seen[id] {
		return
	}
	b.shaper.seen[id] = true
	key := b.event.Task.Key()
	b.shaper.emitted[key] = append(b.shaper.emitted[key], id)
}

// unsee forgets the messages that a task's earlier attempts streamed.
func (s *Shaper) unsee(t *pregel.Task) {
	for _, id := range s.emitted[t.Key()] {
		delete(s.seen, id)
	}
	delete(s.emitted, t.Key())
}

// metadata says where a message comes from, under LangGraph's names. The pieces of a message come of one task.
func (b *batch) metadata() json.RawMessage {
	t, s := b.event.Task, b.shaper
	if s.about.task == t && s.about.step == b.event.Step {
		return s.about.text
	}
	text, err := encode(struct {
		Step      int      `json:"langgraph_step"`
		Node      string   `json:"langgraph_node"`
		Triggers  []string `json:"langgraph_triggers"`
		Path      []any    `json:"langgraph_path"`
		Namespace string   `json:"langgraph_checkpoint_ns"`
	}{b.event.Step, t.Node, b.graph.triggersOf(t), pathOf(t), t.Space()})
	if err != nil && b.err == nil {
		b.err = err
	}
	s.about = about{t, b.event.Step, text}
	return text
}
