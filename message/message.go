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

// What the package's types make of JSON follows from its text alone.
var (
	_ = jsonfit.DecodesAlone[Message]()
	_ = jsonfit.DecodesAlone[Content]()
	_ = jsonfit.DecodesAlone[Part]()
	_ = jsonfit.DecodesAlone[ToolCall]()
)

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

// ToolCall is a call of a tool that a model asks for. Its JSON is that of the OpenAI API.
type ToolCall struct {
	ID string
	// Type is "function", which "" means too, or "custom" for a tool that takes free text.
	Type string
	Name string
	// Arguments is JSON, as the model wrote it: it may be malformed. For a custom tool it is the free text.
	Arguments string
	// Fields are the call's other fields.
	Fields map[string]json.RawMessage
}

const (
	callFunction = "function"
	callCustom   = "custom"
)

// calledTool is what a call's type names: "function": {"name", "arguments"} or "custom": {"name", "input"}.
type calledTool struct {
	Name      string  `json:"name"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"`
}

// MarshalJSON returns {"id", "type": "function", "function": {"name", "arguments"}}, or what a custom tool has instead.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	out := object{}
	out.add("id", c.ID)
	if c.Type == callCustom {
		out.add("type", callCustom)
		out.add(callCustom, calledTool{Name: c.Name, Input: &c.Arguments})
	} else {
		out.add("type", callFunction)
		out.add(callFunction, calledTool{Name: c.Name, Arguments: &c.Arguments})
	}
	out.addFields(c.Fields)
	return out.json()
}

// UnmarshalJSON takes the shape that MarshalJSON returns.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := jsonfit.Decode(data, &fields); err != nil {
		return err
	}
	*c = ToolCall{}
	var function, custom calledTool
	if err := take(fields, &c.Fields, map[string]any{
		"id": &c.ID, "type": &c.Type, callFunction: &function, callCustom: &custom,
	}); err != nil {
		return err
	}
	called, text := function, function.Arguments
	switch c.Type {
	case "", callFunction:
		c.Type = ""
	case callCustom:
		called, text = custom, custom.Input
	default:
		return fmt.Errorf("a tool call is of type %q or %q, not %q", callFunction, callCustom, c.Type)
	}
	c.Name = called.Name
	if text != nil {
		c.Arguments = *text
	}
	return nil
}

// toolCall is a part of type "tool_use" as a call. What is missing in it stays empty.
func (p Part) toolCall() ToolCall {
	var call ToolCall
	_ = p.field("id", &call.ID)
	_ = p.field("name", &call.Name)
	var arguments bytes.Buffer
	if json.Compact(&arguments, p.Fields["input"]) == nil {
		call.Arguments = arguments.String()
	}
	return call
}

// toolUse is a call as a part of type "tool_use".
func (c ToolCall) toolUse() (Part, error) {
	input := json.RawMessage(c.Arguments)
	if c.Arguments == "" {
		input = json.RawMessage("{}")
	}
	if c.Type == callCustom || jsonfit.KindOf(input) != '{' || !json.Valid(input) {
		return Part{}, fmt.Errorf("the arguments of tool call %q (%s) are no JSON object, and Anthropic's API takes no other: "+
			"answer the call with an error, or drop it", c.ID, c.Name)
	}
	return partOf(partToolUse, map[string]any{"id": c.ID, "name": c.Name, "input": input})
}
