package screen

import (
	"encoding/json"
	"maps"
	"slices"
)

// anyAnswer is the sample for a question without a schema: a string fits, and shows the quotes that strings need.
const anyAnswer = `"…"`

// answerSchema is the part of a JSON schema that decides what a first answer looks like.
type answerSchema struct {
	Type       schemaTypes                `json:"type"`
	Const      json.RawMessage            `json:"const"`
	Enum       []json.RawMessage          `json:"enum"`
	Default    json.RawMessage            `json:"default"`
	Minimum    *json.Number               `json:"minimum"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
}

// schemaTypes is a schema's type: one name or a list of them.
type schemaTypes []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *schemaTypes) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = schemaTypes{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// first returns the first type other than null, which no one would want to type first.
func (t schemaTypes) first() string {
	for _, name := range t {
		if name != "null" {
			return name
		}
	}
	if len(t) > 0 {
		return "null"
	}
	return ""
}

// SampleAnswer returns an answer to edit that fits simple schemas: true for a boolean, a string for a string, an
// object with its required fields.
func SampleAnswer(schema json.RawMessage) string {
	const deepest = 4 // schemas can nest without end, a command line cannot
	return Compact(sample(schema, deepest))
}

func sample(schema json.RawMessage, depth int) json.RawMessage {
	var s answerSchema
	if len(schema) == 0 || depth == 0 || json.Unmarshal(schema, &s) != nil {
		return json.RawMessage(anyAnswer)
	}
	switch {
	case s.Const != nil:
		return s.Const
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.Type) == 0 && len(s.AnyOf) > 0:
		return sample(s.AnyOf[0], depth-1)
	case len(s.Type) == 0 && len(s.OneOf) > 0:
		return sample(s.OneOf[0], depth-1)
	}
	return sampleOfType(s, depth)
}

func sampleOfType(s answerSchema, depth int) json.RawMessage {
	switch s.Type.first() {
	case "boolean":
		return json.RawMessage("true")
	case "integer", "number":
		if s.Minimum != nil {
			return json.RawMessage(*s.Minimum)
		}
		return json.RawMessage("0")
	case "array":
		return json.RawMessage("[]")
	case "null":
		return json.RawMessage("null")
	case "object":
		return sampleObject(s, depth)
	default:
		return json.RawMessage(anyAnswer)
	}
}

// sampleObject fills in the required fields in the schema's order, or every field by name when none is required.
func sampleObject(s answerSchema, depth int) json.RawMessage {
	fields := s.Required
	if len(fields) == 0 {
		fields = slices.Sorted(maps.Keys(s.Properties))
	}
	text := []byte("{")
	for i, field := range fields {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(field)
		if err != nil {
			return json.RawMessage("{}")
		}
		text = append(append(text, name...), ':')
		text = append(text, sample(s.Properties[field], depth-1)...)
	}
	return append(text, '}')
}
