package superstep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The roles of a [Message].
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message of a conversation with a model. Its JSON is the chat shape of the OpenAI API; content parts
// keep fields that this package does not know, so messages in the shape of the Anthropic API (text, tool_use,
// tool_result and image blocks) come through unchanged too.
type Message struct {
	// ID is unique within its channel; [Messages.Append] gives one to a message without.
	ID   string `json:"id,omitempty"`
	Role string `json:"role"`
	// Content is text or a list of parts.
	Content Content `json:"content"`
	// Name tells apart participants of the same role.
	Name string `json:"name,omitempty"`
	// ToolCalls are the calls that an assistant message asks for.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID says which call a tool message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// Text is the content of a message that is only text.
func Text(s string) Content { return Content{Text: s} }

// Content is a message's content: Text, or Parts when there are any. Its JSON is a string or a list.
type Content struct {
	Text  string
	Parts []Part
}

// String returns the text, for parts that of the text parts joined by line breaks.
func (c Content) String() string {
	if c.Parts == nil {
		return c.Text
	}
	var texts []string
	for _, p := range c.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// MarshalJSON returns a string, or a list when there are parts.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Parts != nil {
		return encodeJSON(c.Parts)
	}
	return encodeJSON(c.Text)
}

// UnmarshalJSON takes a string, a list of parts, or null (an assistant message that only calls tools).
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	switch kindOf(data) {
	case 'n':
		return nil
	case '[':
		c.Parts = []Part{}
		return decodeJSON(data, &c.Parts)
	case '"':
		return decodeJSON(data, &c.Text)
	}
	return fmt.Errorf("a message's content is a string or a list of parts, not %s", found(data))
}

// Part is one part of a message's content. Fields holds what belongs to its type besides the text: "image_url",
// "input", "source" and so on.
type Part struct {
	Type   string
	Text   string
	Fields map[string]json.RawMessage
}

// MarshalJSON returns the part as one object, with Fields beside type and text.
func (p Part) MarshalJSON() ([]byte, error) {
	fields := make(map[string]any, len(p.Fields)+2)
	for name, v := range p.Fields {
		fields[name] = v
	}
	fields["type"] = p.Type
	if p.Text != "" || p.Type == "text" {
		fields["text"] = p.Text
	}
	return encodeJSON(fields)
}

// UnmarshalJSON takes an object with a type.
func (p *Part) UnmarshalJSON(data []byte) error {
	*p = Part{}
	var fields map[string]json.RawMessage
	if err := decodeJSON(data, &fields); err != nil {
		return err
	}
	for name, into := range map[string]*string{"type": &p.Type, "text": &p.Text} {
		raw, ok := fields[name]
		if !ok || kindOf(raw) != '"' {
			continue
		}
		if err := decodeJSON(raw, into); err != nil {
			return err
		}
		delete(fields, name)
	}
	if p.Type == "" {
		return fmt.Errorf("a content part needs a type, such as \"text\", in %s", found(data))
	}
	if len(fields) > 0 {
		p.Fields = fields
	}
	return nil
}

// ToolCall is a call of a tool that a model asks for. Its JSON is that of the OpenAI API's function calls.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is JSON, as the model wrote it: it may be malformed.
	Arguments string
}

// toolCall is ToolCall on the wire.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// MarshalJSON returns {"id", "type": "function", "function": {"name", "arguments"}}.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	wire := toolCall{ID: c.ID, Type: "function"}
	wire.Function.Name, wire.Function.Arguments = c.Name, c.Arguments
	return encodeJSON(wire)
}

// UnmarshalJSON takes the shape that MarshalJSON returns.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var wire toolCall
	if err := decodeJSON(data, &wire); err != nil {
		return err
	}
	*c = ToolCall{ID: wire.ID, Name: wire.Function.Name, Arguments: wire.Function.Arguments}
	return nil
}

// checkMessages refuses an update that the messages reducer would not take or that no model API has.
func checkMessages(raw []byte) error {
	const expected = "a list of messages with role and content"
	if kindOf(raw) != '[' {
		return &misfit{expected: expected, found: found(raw)}
	}
	var messages []json.RawMessage
	if err := decodeJSON(raw, &messages); err != nil {
		return &misfit{reason: "it is not JSON: " + err.Error()}
	}
	for i, one := range messages {
		var m Message
		if kindOf(bytes.TrimSpace(one)) != '{' {
			return &misfit{path: fmt.Sprint(i), expected: "a message with role and content", found: found(one)}
		}
		if err := decodeJSON(one, &m); err != nil {
			reason := "it is not a message: " + strings.TrimPrefix(err.Error(), "json: ")
			return &misfit{path: fmt.Sprint(i), reason: reason}
		}
		if m.Role == "" {
			return &misfit{path: fmt.Sprint(i), reason: `the message needs a role, such as "user"`}
		}
	}
	return nil
}
