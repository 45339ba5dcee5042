package jsonfit

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"superstep.dev/graphadapter/pregel"
)

// longestShape bounds the schema of one type, in bytes: what is longer nobody reads.
const longestShape = 32 << 10

// Shape returns a JSON schema of t for people and their forms. Other than [Schema] it always gives one: of a type that has none,
// because it holds itself, or whose schema is too long, it says only what kind of value it is. A list or a map is not said to be
// null, although Go takes null for an empty one.
func Shape(t reflect.Type) pregel.Value {
	var s jsonschema.Schema
	raw, err := Schema(t)
	if err != nil || len(raw) > longestShape || json.Unmarshal(raw, &s) != nil {
		s = jsonschema.Schema{Type: kindName(t)}
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return name == "null" })
	}
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	out, err := Encode(&s)
	if err != nil || string(out) == "true" {
		return pregel.Value("{}") // which says the same, as the object that clients expect
	}
	return out
}

// kindName is what JSON calls values of t, "" for any.
func kindName(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(jsonUnmarshaler) {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	}
	return ""
}

// Object returns the JSON schema of an object with these members, none of which has to be there.
func Object(members map[string]pregel.Value) pregel.Value {
	out, err := Encode(struct {
		Type       string                  `json:"type"`
		Properties map[string]pregel.Value `json:"properties"`
	}{"object", members})
	if err != nil {
		return pregel.Value(`{"type":"object"}`)
	}
	return out
}
