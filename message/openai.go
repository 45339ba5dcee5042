package message

import (
	"encoding/json"
	"fmt"
	"slices"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
)

// roleDeveloper is what newer OpenAI models call the system.
const roleDeveloper = "developer"

// notForOpenAI are fields of responses that no request takes.
var notForOpenAI = []string{"annotations", "type", "model", "stop_reason", "stop_sequence", "usage", "container"}

// OpenAIMessages returns a conversation as the "messages" of a request to the OpenAI chat API, and of the many APIs that
// have its shape. What such an API returned goes back as it came, without ids; the shape of the Anthropic API is
// converted: tool_use and tool_result parts become tool calls and tool messages, images become image_url parts. A
// model's thinking is left out, and so are cache_control, citations and is_error, which mean nothing there. Anything
// else that has no place there is [thread.ErrBadInput].
func OpenAIMessages(messages []Message) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for i, m := range messages {
		converted, err := m.forOpenAI()
		if err != nil {
			return nil, conversionError("OpenAI", i, m, err)
		}
		for _, c := range converted {
			raw, err := jsonfit.Encode(c)
			if err != nil {
				return nil, conversionError("OpenAI", i, m, err)
			}
			out = append(out, raw)
		}
	}
	return out, nil
}

func conversionError(api string, i int, m Message, err error) error {
	return &thread.Error{Kind: thread.ErrBadInput, Cause: err,
		Message: fmt.Sprintf("message %d (%s) has no %s shape", i, m.Role, api)}
}

// forOpenAI returns the message as one or, when it holds results of tools, several.
func (m Message) forOpenAI() ([]Message, error) {
	var out []Message
	var parts []Part
	calls := slices.Clone(m.ToolCalls)
	for _, p := range m.Content.Parts {
		switch p.Type {
		case partText:
			p.Fields = without(p.Fields, "cache_control", "citations")
			parts = append(parts, p)
		case partImageURL, partAudio, partFile, partRefusal:
			parts = append(parts, p)
		case partImage:
			url, err := p.imageURL()
			if err != nil {
				return nil, err
			}
			parts = append(parts, url)
		case partToolUse:
			calls = append(calls, p.toolCall())
		case partToolResult:
			answer, err := p.toolMessage()
			if err != nil {
				return nil, err
			}
			out = append(out, answer)
		case partThinking, partRedacted:
		default:
			return nil, fmt.Errorf("a part of type %q", p.Type)
		}
	}
	rest := m
	rest.ID, rest.ToolCalls, rest.Fields = "", calls, without(m.Fields, notForOpenAI...)
	if len(m.Content.Parts) > 0 {
		if rest.Content.Parts = parts; parts == nil {
			rest.Content = Content{state: contentNull}
		}
		if parts == nil && calls == nil && len(out) > 0 {
			return out, nil // it was nothing but results
		}
	}
	return append(out, rest), nil
}

func without(fields map[string]json.RawMessage, names ...string) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for name, v := range fields {
		if slices.Contains(names, name) {
			continue
		}
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[name] = v
	}
	return out
}

// toolMessage is a tool's result as a message of its own, which holds text only.
func (p Part) toolMessage() (Message, error) {
	m := Message{Role: RoleTool}
	if err := p.field("tool_use_id", &m.ToolCallID); err != nil {
		return m, err
	}
	if err := p.field("content", &m.Content); err != nil {
		return m, err
	}
	for i, part := range m.Content.Parts {
		if part.Type != partText {
			return m, fmt.Errorf("a tool's result with a part of type %q, where only text is taken", part.Type)
		}
		m.Content.Parts[i].Fields = without(part.Fields, "cache_control", "citations")
	}
	return m, nil
}
