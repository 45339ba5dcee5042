package message

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
)

// AnthropicMessages returns a conversation as the "system" (nil when there is none) and the "messages" of a request to the
// Anthropic messages API. What that API returned goes back as it came, thinking included, without ids. The shape of the
// OpenAI API is converted: tool calls become tool_use parts, consecutive tool messages the tool_result parts of one user
// message, image_url parts images; names and an image's detail are left out. A tool call whose arguments are no JSON
// object, and anything else that has no place there, is [thread.ErrBadInput].
func AnthropicMessages(messages []Message) (system json.RawMessage, turns []json.RawMessage, err error) {
	var instructions []Content
	var converted []Message
	answers := -1 // the message that takes the results of tools
	for i, m := range messages {
		content, err := m.forAnthropic()
		if err != nil {
			return nil, nil, conversionError("Anthropic", i, m, err)
		}
		switch m.Role {
		case RoleSystem, roleDeveloper:
			instructions = append(instructions, content)
			continue
		case RoleTool:
			if answers == len(converted)-1 && answers >= 0 {
				converted[answers].Content.Parts = append(converted[answers].Content.Parts, content.Parts...)
				continue
			}
			answers = len(converted)
			m.Role = RoleUser
		}
		converted = append(converted, Message{Role: m.Role, Content: content})
	}
	turns = make([]json.RawMessage, len(converted))
	for i, m := range converted {
		if turns[i], err = jsonfit.Encode(m); err != nil {
			return nil, nil, conversionError("Anthropic", i, m, err)
		}
	}
	if len(instructions) > 0 {
		system, err = jsonfit.Encode(joined(instructions))
	}
	return system, turns, err
}

// joined is the contents one after the other; one alone stays as it is.
func joined(contents []Content) Content {
	if len(contents) == 1 {
		return contents[0]
	}
	var parts []Part
	for _, c := range contents {
		parts = append(parts, c.asParts()...)
	}
	return Content{Parts: parts}
}

// asParts returns the content as parts. The API takes no empty text.
func (c Content) asParts() []Part {
	if c.Parts != nil || c.Text == "" {
		return c.Parts
	}
	return []Part{{Type: partText, Text: c.Text}}
}

func (m Message) forAnthropic() (Content, error) {
	content := m.Content
	content.state = contentGiven
	if content.Parts != nil {
		content.Parts = slices.Clone(content.Parts)
	}
	for i, p := range content.Parts {
		var err error
		if content.Parts[i], err = p.forAnthropic(); err != nil {
			return Content{}, err
		}
	}
	if m.Role == RoleTool {
		return m.toolResult(content)
	}
	for i, call := range m.ToolCalls {
		use, err := call.toolUse()
		if err != nil {
			return Content{}, err
		}
		if i == 0 {
			content = Content{Parts: content.asParts()}
		}
		content.Parts = append(content.Parts, use)
	}
	return content, nil
}

// toolResult is a tool message's content as the one part of another.
func (m Message) toolResult(content Content) (Content, error) {
	fields := map[string]any{"tool_use_id": m.ToolCallID}
	if !content.empty() {
		fields["content"] = content
	}
	part, err := partOf(partToolResult, fields)
	return Content{Parts: []Part{part}}, err
}

func (p Part) forAnthropic() (Part, error) {
	switch p.Type {
	case partImageURL:
		return p.imageSource()
	case partRefusal:
		text := Part{Type: partText}
		return text, p.field(partRefusal, &text.Text)
	case partAudio, partFile:
		return Part{}, fmt.Errorf("a part of type %q: convert it to what the model takes first", p.Type)
	}
	return p, nil
}

// image is the source of an image in the Anthropic API.
type image struct {
	Type      string `json:"type"` // "base64" or "url"
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// imageSource is an image_url part as an image part.
func (p Part) imageSource() (Part, error) {
	var of struct {
		URL string `json:"url"`
	}
	if err := p.field(partImageURL, &of); err != nil {
		return Part{}, err
	}
	source := image{Type: "url", URL: of.URL}
	if data, ok := strings.CutPrefix(of.URL, "data:"); ok {
		kind, encoded, ok := strings.Cut(data, ";base64,")
		if !ok {
			return Part{}, fmt.Errorf("an image in a data URL that is not base64")
		}
		source = image{Type: "base64", MediaType: kind, Data: encoded}
	}
	return partOf(partImage, map[string]any{"source": source})
}

// imageURL is an image part as an image_url part.
func (p Part) imageURL() (Part, error) {
	var source image
	if err := p.field("source", &source); err != nil {
		return Part{}, err
	}
	url := source.URL
	switch source.Type {
	case "base64":
		url = "data:" + source.MediaType + ";base64," + source.Data
	case "url":
	default:
		return Part{}, fmt.Errorf("an image with a source of type %q", source.Type)
	}
	return partOf(partImageURL, map[string]any{partImageURL: map[string]string{"url": url}})
}

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
