package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"superstep.dev/internal/jsonfit"
)

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
