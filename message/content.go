package message

import (
	"encoding/json"
	"fmt"
	"strings"
	"superstep.dev/internal/jsonfit"
)

// Content is a message's content: Text, or Parts when there are any. Its JSON is a string or a list.
type Content struct {
	Text  string
	Parts []Part
	// state keeps a null apart from an empty text: both APIs have assistant messages that only call tools.
	state contentState
}

type contentState byte

const (
	contentGiven contentState = iota
	contentNull
	contentAbsent
)

// Text is the content of a message that is only text.
func Text(s string) Content { return Content{Text: s} }

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
	switch {
	case c.Parts != nil:
		return jsonfit.Encode(c.Parts)
	case c.Text == "" && c.state != contentGiven:
		return []byte("null"), nil
	}
	return jsonfit.Encode(c.Text)
}

// UnmarshalJSON takes a string, a list of parts, or null (an assistant message that only calls tools).
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	switch jsonfit.KindOf(data) {
	case 'n':
		c.state = contentNull
		return nil
	case '[':
		c.Parts = []Part{}
		return jsonfit.Decode(data, &c.Parts)
	case '"':
		return jsonfit.Decode(data, &c.Text)
	}
	return fmt.Errorf("a message's content is a string or a list of parts, not %s", jsonfit.Found(data))
}

// absent reports whether the message had no content at all, and got none since.
func (c Content) absent() bool { return c.state == contentAbsent && c.empty() }

func (c Content) empty() bool { return c.Text == "" && c.Parts == nil }

// The types of parts that this package knows: text is both APIs', image_url, input_audio, file and refusal are OpenAI's,
// the others Anthropic's.
const (
	partText       = "text"
	partImageURL   = "image_url"
	partAudio      = "input_audio"
	partFile       = "file"
	partRefusal    = "refusal"
	partImage      = "image"
	partToolUse    = "tool_use"
	partToolResult = "tool_result"
	partThinking   = "thinking"
	partRedacted   = "redacted_thinking"
)

// Part is one part of a message's content. Fields holds what belongs to its type besides the text: "image_url",
// "input", "source", "cache_control" and so on.
type Part struct {
	Type   string
	Text   string
	Fields map[string]json.RawMessage
}

// MarshalJSON returns the part as one object, with Fields beside type and text.
func (p Part) MarshalJSON() ([]byte, error) {
	out := object{}
	out.add("type", p.Type)
	if p.Text != "" || p.Type == partText {
		out.add("text", p.Text)
	}
	out.addFields(p.Fields)
	return out.json()
}

// UnmarshalJSON takes an object with a type.
func (p *Part) UnmarshalJSON(data []byte) error {
	*p = Part{}
	var fields map[string]json.RawMessage
	if err := jsonfit.Decode(data, &fields); err != nil {
		return err
	}
	if jsonfit.KindOf(fields["type"]) != '"' {
		return fmt.Errorf("a content part needs a type, such as \"text\", in %s", jsonfit.Found(data))
	}
	if err := take(fields, &p.Fields, map[string]any{"type": &p.Type}); err != nil {
		return err
	}
	// An empty text of another type stays where it is: only a text part is written with one.
	if text := p.Fields["text"]; jsonfit.KindOf(text) == '"' && (p.Type == partText || string(text) != `""`) {
		if err := jsonfit.Decode(text, &p.Text); err != nil {
			return err
		}
		delete(p.Fields, "text")
	}
	if len(p.Fields) == 0 {
		p.Fields = nil
	}
	return nil
}

// field decodes one of the part's fields, and leaves into alone when it is not there.
func (p Part) field(name string, into any) error {
	raw, ok := p.Fields[name]
	if !ok {
		return nil
	}
	if err := jsonfit.Decode(raw, into); err != nil {
		return fmt.Errorf("the part of type %q: %s: %w", p.Type, name, err)
	}
	return nil
}

// partOf makes a part with fields that encode.
func partOf(kind string, fields map[string]any) (Part, error) {
	p := Part{Type: kind, Fields: map[string]json.RawMessage{}}
	for name, v := range fields {
		raw, err := jsonfit.Encode(v)
		if err != nil {
			return Part{}, err
		}
		p.Fields[name] = raw
	}
	return p, nil
}
