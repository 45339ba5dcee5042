package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// The roles of a [Message].
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message of a conversation with a model. It reads, keeps and writes the JSON of both the OpenAI chat API
// and the Anthropic messages API, requests and responses, without losing a field: decode what an API returned into a
// Message, and turn a conversation into either API's request with [OpenAIMessages] and [AnthropicMessages].
//
// A call of a tool is an element of ToolCalls in the one API and a part of the content in the other: [Message.Calls]
// returns both.
type Message struct {
	// ID is unique within its channel. See superstep.Messages.Append for a message without one.
	ID   string
	Role string
	// Content is text or a list of parts.
	Content Content
	// Name tells apart participants of the same role.
	Name string
	// ToolCalls are the calls that an assistant message asks for.
	ToolCalls []ToolCall
	// ToolCallID says which call a tool message answers.
	ToolCallID string
	// Fields are the message's other fields, such as "refusal", "stop_reason" or "usage".
	Fields map[string]json.RawMessage
}

// Calls returns the calls of tools that the message asks for, as ToolCalls or as parts of type "tool_use".
func (m Message) Calls() []ToolCall {
	calls := slices.Clone(m.ToolCalls)
	for _, p := range m.Content.Parts {
		if p.Type == partToolUse {
			calls = append(calls, p.toolCall())
		}
	}
	return calls
}

// ToolResult is the message that answers a call of a tool with text.
func ToolResult(call ToolCall, text string) Message {
	return Message{Role: RoleTool, ToolCallID: call.ID, Content: Text(text)}
}

// MarshalJSON returns the fields that are set, role and content always, Fields last.
func (m Message) MarshalJSON() ([]byte, error) {
	out := object{}
	out.addText("id", m.ID)
	out.add("role", m.Role)
	if !m.Content.absent() {
		out.add("content", m.Content)
	}
	out.addText("name", m.Name)
	if m.ToolCalls != nil {
		out.add("tool_calls", m.ToolCalls)
	}
	out.addText("tool_call_id", m.ToolCallID)
	out.addFields(m.Fields)
	return out.json()
}

// UnmarshalJSON takes a message of either API. An object without a content has none.
func (m *Message) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := jsonfit.Decode(data, &fields); err != nil {
		return err
	}
	*m = Message{}
	if _, ok := fields["content"]; !ok {
		m.Content.state = contentAbsent
	}
	return take(fields, &m.Fields, map[string]any{"id": &m.ID, "role": &m.Role, "content": &m.Content, "name": &m.Name,
		"tool_calls": &m.ToolCalls, "tool_call_id": &m.ToolCallID})
}

// take decodes the named members of an object and leaves the others in rest. A null stays there too, so that it comes
// out again, except for what has a null of its own.
func take(fields map[string]json.RawMessage, rest *map[string]json.RawMessage, into map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(into)) {
		raw, ok := fields[name]
		_, content := into[name].(*Content)
		if !ok || jsonfit.KindOf(raw) == 'n' && !content {
			continue
		}
		err := jsonfit.Decode(raw, into[name])
		switch {
		case err != nil && content:
			return err // it says so itself
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(fields, name)
	}
	if len(fields) > 0 {
		*rest = fields
	}
	return nil
}

// object is a JSON object that is being written, with its members in the order in which they were added.
type object struct {
	raw   pregel.Value
	names []string
	err   error
}

func (o *object) add(name string, v any) {
	raw, err := jsonfit.Encode(v)
	if err != nil {
		o.err = err
		return
	}
	if o.raw == nil {
		o.raw = pregel.Value("{")
	}
	o.raw, o.names = jsonfit.AppendMember(o.raw, name, raw), append(o.names, name)
}

func (o *object) addText(name, text string) {
	if text != "" {
		o.add(name, text)
	}
}

// addFields adds the members that are not there yet.
func (o *object) addFields(fields map[string]json.RawMessage, without ...string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(o.names, name) && !slices.Contains(without, name) {
			o.add(name, fields[name])
		}
	}
}

func (o *object) json() ([]byte, error) { return append(o.raw, '}'), o.err }

// CheckMessages refuses an update that the messages reducer would not take or that no model API has.
func CheckMessages(raw []byte) error {
	const expected = "a list of messages with role and content"
	if jsonfit.KindOf(raw) != '[' {
		return &jsonfit.Misfit{Expected: expected, Found: jsonfit.Found(raw)}
	}
	var messages []json.RawMessage
	if err := jsonfit.Decode(raw, &messages); err != nil {
		return &jsonfit.Misfit{Reason: "it is not JSON: " + err.Error()}
	}
	for i, one := range messages {
		var m Message
		if jsonfit.KindOf(bytes.TrimSpace(one)) != '{' {
			return &jsonfit.Misfit{Path: fmt.Sprint(i), Expected: "a message with role and content", Found: jsonfit.Found(one)}
		}
		if err := jsonfit.Decode(one, &m); err != nil {
			reason := "it is not a message: " + strings.TrimPrefix(err.Error(), "json: ")
			return &jsonfit.Misfit{Path: fmt.Sprint(i), Reason: reason}
		}
		if m.Role == "" {
			return &jsonfit.Misfit{Path: fmt.Sprint(i), Reason: `the message needs a role, such as "user"`}
		}
	}
	return nil
}
