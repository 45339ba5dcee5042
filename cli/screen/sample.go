package screen

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// anyAnswer is the sample for a question without a schema: a string fits, and shows the quotes that strings need.
const anyAnswer = `"…"`

// SampleAnswer returns an answer to edit that fits simple schemas: true for a boolean, a string for a string, an
// object with its required fields.
func SampleAnswer(schema json.RawMessage) string {
	const deepest = 4 // schemas can nest without end, a command line cannot
	s := &jsonschema.Schema{}
	if len(schema) > 0 && json.Unmarshal(schema, s) != nil {
		return anyAnswer
	}
	return Compact(sample(s, deepest))
}

func sample(s *jsonschema.Schema, depth int) json.RawMessage {
	if s == nil || depth == 0 {
		return json.RawMessage(anyAnswer)
	}
	kinds := append(s.Types, s.Type) // null only when nothing else will do: no one would want to type that first
	kind := slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == "null" || k == "" })
	switch {
	case s.Const != nil:
		return encoded(*s.Const)
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return encoded(s.Enum[0])
	case len(kind) == 0 && slices.Contains(kinds, "null"):
		return json.RawMessage("null")
	case len(kind) == 0 && len(s.AnyOf) > 0:
		return sample(s.AnyOf[0], depth-1)
	case len(kind) == 0 && len(s.OneOf) > 0:
		return sample(s.OneOf[0], depth-1)
	case len(kind) == 0:
		return json.RawMessage(anyAnswer)
	case kind[0] == "object":
		return sampleObject(s, depth)
	case s.Minimum != nil && (kind[0] == "integer" || kind[0] == "number"):
		return encoded(*s.Minimum)
	}
	simple := map[string]string{"boolean": "true", "integer": "0", "number": "0", "array": "[]", "string": anyAnswer}
	return json.RawMessage(cmp.Or(simple[kind[0]], anyAnswer))
}

// sampleObject fills in the required fields in the schema's order, or every field by name when none is required.
func sampleObject(s *jsonschema.Schema, depth int) json.RawMessage {
	fields := s.Required
	if len(fields) == 0 {
		fields = slices.Sorted(maps.Keys(s.Properties))
	}
	text := []byte("{")
	for i, field := range fields {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, encoded(field)...), ':')
		text = append(text, sample(s.Properties[field], depth-1)...)
	}
	return append(text, '}')
}

// encoded is what came from JSON as JSON.
func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(anyAnswer)
	}
	return text
}

// Meanings returns, for each field of an answer of which there are a few choices, the choices and what they mean. A choice is not in a
// field when the answer itself is one.
func Meanings(schema json.RawMessage) []string {
	s := &jsonschema.Schema{}
	if json.Unmarshal(schema, s) != nil {
		return nil
	}
	var out []string
	meaning := func(name string, s *jsonschema.Schema) {
		if s == nil || len(s.Enum) == 0 {
			return
		}
		choices := make([]string, len(s.Enum))
		for i, choice := range s.Enum {
			choices[i] = strings.Trim(string(encoded(choice)), `"`)
		}
		text := name + strings.Join(choices, ", ")
		if s.Description != "" {
			text += ": " + s.Description
		}
		out = append(out, text)
	}
	meaning("", s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		meaning(name+"  ", s.Properties[name])
	}
	return out
}
