package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"superstep.dev/serve/blocks"
)

// object is a JSON object whose members are not looked into.
type object map[string]json.RawMessage

func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// text returns a member that is a string, "" for any other.
func (o object) text(name string) string {
	var s string
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

// roles are the roles of messages by LangChain's types.
var roles = map[string]string{"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "HumanMessageChunk": "user",
	"system": "system", "tool": "tool", "remove": "remove", "developer": "system", "user": "user", "assistant": "assistant", "function": "function"}

// types are LangChain's types of messages by their roles.
var types = map[string]string{"user": "human", "assistant": "ai", "system": "system", "tool": "tool", "remove": "remove", "developer": "system"}

// messagesIn are the messages that a client gives: one or a list, each a dict of LangChain's, one with a role, a pair of role and
// text, or a text, which is a person's. A message without an id is given one. The error is a *noMessage.
func messagesIn(v json.RawMessage) (json.RawMessage, error) {
	var all []json.RawMessage
	if json.Unmarshal(v, &all) != nil {
		all = []json.RawMessage{v}
	} else if pair, ok := pairOf(v); ok {
		all = []json.RawMessage{pair}
	}
	out := make([]json.RawMessage, len(all))
	for i, m := range all {
		var err error
		if out[i], err = messageIn(m); err != nil {
			return nil, err
		}
	}
	return raw(out), nil
}

// noMessage is what a client gives for a message, and is none. Clients know it as a run's failure, under this name.
type noMessage struct{ kind, says string }

// Error implements error.
func (e *noMessage) Error() string { return e.says }

func unexpectedMessage(kind string) error {
	return &noMessage{"ValueError", fmt.Sprintf("Unexpected message type: '%.100s'. Use one of 'human', 'user', 'ai', 'assistant', 'function', 'tool', 'system', or 'developer'.", kind)}
}

// pairOf is a message that is written as its role and its text.
func pairOf(v json.RawMessage) (json.RawMessage, bool) {
	var pair []string
	if json.Unmarshal(v, &pair) != nil || len(pair) != 2 || roles[pair[0]] == "" {
		return nil, false
	}
	return raw(map[string]string{"role": roles[pair[0]], "content": pair[1]}), true
}

func messageIn(v json.RawMessage) (json.RawMessage, error) {
	var pair []string
	if json.Unmarshal(v, &pair) == nil && len(pair) == 2 && roles[pair[0]] == "" {
		return nil, unexpectedMessage(pair[0])
	}
	if pair, ok := pairOf(v); ok {
		v = pair
	}
	var said string
	if json.Unmarshal(v, &said) == nil {
		v = raw(map[string]string{"role": "user", "content": said})
	}
	var m object
	if json.Unmarshal(v, &m) != nil || m == nil {
		return nil, &noMessage{"NotImplementedError", fmt.Sprintf("Unsupported message: %.100s", v)}
	}
	m = constructed(m)
	kind := cmp.Or(m.text("role"), m.text("type"))
	role, known := roles[kind]
	switch {
	case kind == "" || !known && m["content"] == nil || m["content"] == nil && m["tool_calls"] == nil && role != "remove":
		return nil, &noMessage{"ValueError", fmt.Sprintf("Message dict must contain 'role' and 'content' keys, got %.200s", v)}
	case !known:
		return nil, unexpectedMessage(kind)
	}
	m["role"] = raw(role)
	delete(m, "type")
	if m.text("id") == "" {
		m["id"] = raw(uuid.NewString())
	}
	for _, name := range slices.Collect(maps.Keys(m)) {
		if isEmpty(m[name]) && name != "content" {
			delete(m, name)
		}
	}
	callsIn(m)
	return raw(m), nil
}

// constructed is the dict of a message that is written as a call of LangChain's constructor, as JSON of a message in JavaScript is.
func constructed(m object) object {
	var path []string
	var fields object
	if m.text("type") != "constructor" || json.Unmarshal(m["id"], &path) != nil || json.Unmarshal(m["kwargs"], &fields) != nil || len(path) == 0 || fields == nil {
		return m
	}
	name, _ := strings.CutSuffix(path[len(path)-1], "Chunk")
	name, _ = strings.CutSuffix(name, "Message")
	delete(fields, "role")
	fields["type"] = raw(strings.ToLower(name))
	return fields
}

func isEmpty(v json.RawMessage) bool {
	return slices.Contains([]string{"", "null", "{}", "[]", `""`}, strings.TrimSpace(string(v)))
}

// callsIn writes the calls of tools of a message as the graphs have them.
func callsIn(m object) {
	var calls []object
	if json.Unmarshal(m["tool_calls"], &calls) != nil {
		return
	}
	for i, c := range calls {
		if _, ours := c["function"]; ours {
			continue
		}
		args := "{}"
		if len(c["args"]) > 0 {
			args = string(c["args"])
		}
		calls[i] = object{"id": raw(c.text("id")), "type": raw("function"), "function": raw(map[string]string{"name": c.text("name"), "arguments": args})}
	}
	m["tool_calls"] = raw(calls)
}

// messageOut is a message of a graph as LangChain writes it.
func messageOut(v json.RawMessage) json.RawMessage {
	var m object
	if json.Unmarshal(v, &m) != nil || m == nil || m.text("role") == "" {
		return v
	}
	return raw(m.whole())
}

// whole is a message with every field that LangChain's has.
func (m object) whole() object {
	kind := cmp.Or(types[m.text("role")], m.text("role")) // one that LangChain does not know keeps its name
	out := maps.Clone(m)
	delete(out, "role")
	out["type"] = raw(kind)
	if isEmpty(out["content"]) {
		out["content"] = raw("")
	}
	missing := map[string]string{"name": "null", "additional_kwargs": "{}", "response_metadata": "{}"}
	switch kind {
	case "ai":
		maps.Copy(missing, map[string]string{"invalid_tool_calls": "[]", "usage_metadata": "null"})
		out["tool_calls"] = raw(callsOut(m["tool_calls"]))
	case "tool":
		maps.Copy(missing, map[string]string{"status": `"success"`, "artifact": "null"})
	}
	for name, v := range missing {
		if _, ok := out[name]; !ok {
			out[name] = json.RawMessage(v)
		}
	}
	return out
}

// callOut is a call of a tool as LangChain writes it.
type callOut struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	ID   string          `json:"id"`
	Type string          `json:"type"`
}

// callIn is a call of a tool as graphs have it.
type callIn struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func callsOut(v json.RawMessage) []callOut {
	var calls []callIn
	if json.Unmarshal(v, &calls) != nil {
		return []callOut{}
	}
	out := make([]callOut, len(calls))
	for i, c := range calls {
		out[i] = callOut{Name: c.Function.Name, Args: argsOf(c.Function.Arguments), ID: c.ID, Type: "tool_call"}
	}
	return out
}

// argsOf are the arguments of a call, as far as they have come.
func argsOf(text string) json.RawMessage {
	var args object
	if json.Unmarshal([]byte(text), &args) == nil && args != nil {
		return raw(args)
	}
	return json.RawMessage("{}")
}

// piece is a piece of a message that a node streams.
type piece struct {
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []callIn        `json:"tool_calls"`
}

// chunk is a piece of a message as LangChain streams it. Calls are those pieces of calls whose arguments are whole by themselves.
type chunk struct {
	Content       json.RawMessage `json:"content"`
	Kwargs        struct{}        `json:"additional_kwargs"`
	Response      struct{}        `json:"response_metadata"`
	Type          string          `json:"type"`
	Name          *string         `json:"name"`
	ID            string          `json:"id"`
	Calls         []chunkCall     `json:"tool_calls"`
	InvalidCalls  []chunkCall     `json:"invalid_tool_calls"`
	UsageMetadata *struct{}       `json:"usage_metadata"`
	CallChunks    []callChunk     `json:"tool_call_chunks"`
	Position      *string         `json:"chunk_position"`
}

type callChunk struct {
	Name  *string `json:"name"`
	Args  string  `json:"args"`
	ID    *string `json:"id"`
	Index int     `json:"index"`
	Type  string  `json:"type"`
}

type chunkCall struct {
	Name string  `json:"name"`
	Args object  `json:"args"`
	ID   *string `json:"id"`
	Type string  `json:"type"`
}

// chunk is a piece as LangChain streams it. calls counts the calls of tools that the message has so far.
func (p piece) chunk(calls int) chunk {
	out := chunk{ID: p.ID, Type: "AIMessageChunk", Content: p.content(), Calls: []chunkCall{}, InvalidCalls: []chunkCall{}, CallChunks: []callChunk{}}
	for _, c := range p.ToolCalls {
		at := callChunk{Args: c.Function.Arguments, Type: "tool_call_chunk", Index: max(calls-1, 0)}
		if c.ID != "" {
			at.ID, at.Index = &c.ID, calls
			calls++
		}
		if c.Function.Name != "" {
			at.Name = &c.Function.Name
		}
		out.CallChunks = append(out.CallChunks, at)
		var args object
		if text := cmp.Or(at.Args, "{}"); json.Unmarshal([]byte(text), &args) == nil {
			out.Calls = append(out.Calls, chunkCall{Name: c.Function.Name, Args: args, ID: at.ID, Type: "tool_call"})
		}
	}
	return out
}

func (p piece) content() json.RawMessage {
	if isEmpty(p.Content) {
		return raw("")
	}
	return p.Content
}

// block is a piece for the content blocks of the second version.
func (p piece) block() blocks.Piece {
	out := blocks.Piece{ID: p.ID}
	var parts []json.RawMessage
	if json.Unmarshal(p.Content, &out.Text) != nil && json.Unmarshal(p.Content, &parts) == nil {
		for _, part := range parts {
			var text struct{ Type, Text string }
			if json.Unmarshal(part, &text) == nil && text.Type == "text" {
				out.Text += text.Text
				continue
			}
			out.Others = append(out.Others, part)
		}
	}
	for _, c := range p.ToolCalls {
		out.Calls = append(out.Calls, blocks.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out
}

// trimmed are messages without the fields that are empty.
func trimmed(messages json.RawMessage) json.RawMessage {
	var all []object
	if json.Unmarshal(messages, &all) != nil {
		return messages
	}
	for _, m := range all {
		maps.DeleteFunc(m, func(name string, v json.RawMessage) bool { return name != "content" && isEmpty(v) })
	}
	return raw(all)
}

// sortedKeys are the names in a map, in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// partial is a message as far as its pieces have come.
type partial struct {
	id    string
	text  string
	calls []callIn
}

// add adds a piece.
func (p *partial) add(next piece) {
	var text string
	if json.Unmarshal(next.Content, &text) == nil {
		p.text += text
	}
	for _, c := range next.ToolCalls {
		if c.ID != "" || len(p.calls) == 0 {
			p.calls = append(p.calls, c)
			continue
		}
		p.calls[len(p.calls)-1].Function.Arguments += c.Function.Arguments
	}
}

// whole is the message so far.
func (p *partial) whole() object {
	m := object{"id": raw(p.id), "role": raw("assistant"), "content": raw(p.text)}
	if len(p.calls) > 0 {
		m["tool_calls"] = raw(p.calls)
	}
	return m.whole()
}
