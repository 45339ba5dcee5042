// Package blocks shows a message that is streamed in pieces as the content blocks of the agent server's second version: its start,
// for each block a start, deltas and an end, and its own end.
package blocks

import "encoding/json"

// Piece is a piece of a message.
type Piece struct {
	// ID is the message's.
	ID string
	// Text is what the piece adds to the message's text.
	Text string
	// Others are parts of its content that are no text, as LangChain writes them. Each is whole.
	Others []json.RawMessage
	Calls  []Call
}

// Call is a call of a tool, or a piece of one: without an ID it goes on with the message's last call.
type Call struct {
	ID, Name, Arguments string
}

// Data is what an event of the channel messages says.
type Data map[string]any

// Message is a message as far as its pieces have come. The zero value is one that has not begun.
type Message struct {
	id     string
	blocks []*block
	// text is the index of the text among the blocks, and call that of the last call; -1 for none.
	text, call int
}

// block is a block that is not finished.
type block struct {
	kind  string
	text  string // the text, or the arguments of a call
	id    string
	name  string
	whole json.RawMessage
}

// The types of blocks.
const (
	kindText  = "text"
	kindCall  = "tool_call_chunk"
	kindWhole = ""
)

// Add takes in a piece, and says what there is to tell of it.
func (m *Message) Add(p Piece) []Data {
	var out []Data
	if m.id == "" {
		m.id, m.text, m.call = p.ID, -1, -1
		out = append(out, Data{"event": "message-start", "role": "ai", "id": p.ID})
	}
	if p.Text != "" {
		out = m.write(out, p.Text)
	}
	for _, o := range p.Others {
		out = m.begin(out, &block{kind: kindWhole, whole: o})
	}
	for _, c := range p.Calls {
		out = m.calls(out, c)
	}
	return out
}

// write adds to the text.
func (m *Message) write(out []Data, text string) []Data {
	if m.text < 0 {
		m.text = len(m.blocks)
		out = m.begin(out, &block{kind: kindText})
	}
	m.blocks[m.text].text += text
	return append(out, delta(m.text, Data{"type": "text-delta", "text": text}))
}

// calls begins a call, or adds to the arguments of the last one.
func (m *Message) calls(out []Data, c Call) []Data {
	if c.ID != "" || m.call < 0 {
		m.call = len(m.blocks)
		out = m.begin(out, &block{kind: kindCall, id: c.ID, name: c.Name})
	}
	if c.Arguments == "" {
		return out
	}
	m.blocks[m.call].text += c.Arguments
	return append(out, delta(m.call, Data{"type": "tool-call-delta", "args": c.Arguments}))
}

func (m *Message) begin(out []Data, b *block) []Data {
	m.blocks = append(m.blocks, b)
	return append(out, Data{"event": "content-block-start", "index": len(m.blocks) - 1, "content": b.start()})
}

func delta(index int, d Data) Data {
	return Data{"event": "content-block-delta", "index": index, "delta": d}
}

// Finish ends the message: what was still open is finished first.
func (m *Message) Finish() []Data {
	var out []Data
	for i, b := range m.blocks {
		out = append(out, Data{"event": "content-block-finish", "index": i, "content": b.end()})
	}
	return append(out, Data{"event": "message-finish"})
}

// start is a block that has nothing in it yet. Of one that comes whole it says the type.
func (b *block) start() any {
	switch b.kind {
	case kindText:
		return Data{"type": kindText, "text": ""}
	case kindCall:
		return Data{"type": kindCall, "id": b.id, "name": b.name, "args": ""}
	}
	if kind := typeOf(b.whole); kind != "" {
		return Data{"type": kind}
	}
	return Data{"type": "non_standard", "value": Data{}}
}

// typeOf is the type that a part says it has, "" for one that says none.
func typeOf(part json.RawMessage) string {
	var named struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(part, &named) != nil {
		return ""
	}
	return named.Type
}

// end is a block with all that it has.
func (b *block) end() any {
	switch b.kind {
	case kindText:
		return Data{"type": kindText, "text": b.text}
	case kindCall:
		return b.endOfCall()
	}
	if typeOf(b.whole) == "" {
		return Data{"type": "non_standard", "value": b.whole}
	}
	return b.whole
}

// endOfCall is a call with its arguments. Those that are no JSON object stay the text that they are.
func (b *block) endOfCall() Data {
	text := b.text
	if text == "" {
		text = "{}"
	}
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &args) != nil {
		return Data{"type": "invalid_tool_call", "id": b.id, "name": b.name, "args": text, "error": "the arguments are no JSON object"}
	}
	return Data{"type": "tool_call", "id": b.id, "name": b.name, "args": json.RawMessage(text)}
}
