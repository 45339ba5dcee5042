package jsonfit

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"superstep.dev/graphadapter/pregel"
)

// answerSchemas holds the schema of each answer type: a node asks for the same few types all its life.
var answerSchemas sync.Map // reflect.Type → answerSchemaResult

type answerSchemaResult struct {
	schema pregel.Value
	err    error
}

// Schema returns the JSON schema of the values that decode into t.
func Schema(t reflect.Type) (pregel.Value, error) {
	if known, ok := answerSchemas.Load(t); ok {
		r := known.(answerSchemaResult)
		return r.schema, r.err
	}
	var r answerSchemaResult
	r.schema, r.err = inferSchema(t)
	answerSchemas.Store(t, r)
	return r.schema, r.err
}

func inferSchema(t reflect.Type) (pregel.Value, error) {
	own := map[reflect.Type]*jsonschema.Schema{}
	ownSchemas(t, own, map[reflect.Type]bool{})
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, fmt.Errorf("the answer type %s has no JSON schema (%w): give one with WithAnswerSchema", TypeName(t), err)
	}
	return Encode(schema)
}

// CheckSchema refuses what is no JSON schema.
func CheckSchema(raw pregel.Value) error {
	var schema jsonschema.Schema
	err := json.Unmarshal(raw, &schema)
	if err == nil {
		_, err = schema.Resolve(nil)
	}
	if err != nil {
		return fmt.Errorf("WithAnswerSchema was given no usable JSON schema: %w", err)
	}
	return nil
}

// anyType lists every type: the schema package takes a pointer to a type without any for null alone.
var anyType = []string{"null", "boolean", "number", "string", "array", "object"}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// ownSchemas collects the types within t that decode themselves. Their fields say nothing about their JSON: a decimal
// made of two unexported integers may be a string, so anything is let through, and anything that is text as a string.
func ownSchemas(t reflect.Type, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if t == reflect.TypeFor[time.Time]() {
		return // known to the schema package
	}
	switch pointer := reflect.PointerTo(t); {
	case t == reflect.TypeFor[json.Number]():
		own[t] = &jsonschema.Schema{Type: "number"}
		return
	case t.Kind() != reflect.Pointer && pointer.Implements(jsonUnmarshaler):
		own[t] = &jsonschema.Schema{Types: slices.Clone(anyType)}
		return
	case t.Kind() != reflect.Pointer && pointer.Implements(textUnmarshaler):
		own[t] = &jsonschema.Schema{Type: "string"}
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !reflect.PointerTo(t.Elem()).Implements(jsonUnmarshaler) {
			own[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
			return
		}
		ownSchemas(t.Elem(), own, seen)
	case reflect.Pointer, reflect.Array, reflect.Map:
		ownSchemas(t.Elem(), own, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" {
				ownSchemas(f.Type, own, seen)
			}
		}
	}
}
