package jsonfit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Complete refuses JSON that decodes into t only because Go is lenient: null for a value that is none, an object without a field that
// every value of t has, and a name in another letter case. The error holds no value. Of a type without a schema, one that holds
// itself, null alone is refused.
func Complete(raw []byte, t reflect.Type) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	if isList := t.Kind() == reflect.Slice || t.Kind() == reflect.Map; value == nil && isList && !decodesItself(t) {
		return fmt.Errorf("it is null, and not %s", kindName(t))
	}
	var schema jsonschema.Schema
	text, err := Schema(t)
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		if value == nil && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
			return fmt.Errorf("it is null, and not %s", kindName(t))
		}
		return nil
	}
	return complete(value, &schema, "")
}

func complete(value any, s *jsonschema.Schema, at string) error {
	if s == nil {
		return nil
	}
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	switch value := value.(type) {
	case nil:
		isMap := s.AdditionalProperties != nil && s.Properties == nil // an empty one, which Go writes as null
		if len(types) > 0 && !slices.Contains(types, "null") && !isMap {
			return fmt.Errorf("%sit is null, and not %s", at, strings.Join(types, " or "))
		}
	case []any:
		for i, item := range value {
			if err := complete(item, s.Items, fmt.Sprintf("%s[%d]: ", strings.TrimSuffix(at, ": "), i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return completeObject(value, s, at)
	}
	return nil
}

func completeObject(value map[string]any, s *jsonschema.Schema, at string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		for given := range value {
			if _, known := s.Properties[given]; !known && given != name && strings.EqualFold(given, name) {
				return fmt.Errorf("%sthe name %q is spelled in other letter case", at, name)
			}
		}
	}
	for _, name := range s.Required {
		if _, has := value[name]; !has {
			return fmt.Errorf("%s%q is missing", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		of := s.AdditionalProperties
		if p, known := s.Properties[name]; known {
			of = p
		}
		if err := complete(value[name], of, strings.TrimSuffix(at, ": ")+dot(at)+name+": "); err != nil {
			return err
		}
	}
	return nil
}

func dot(at string) string {
	if at == "" {
		return ""
	}
	return "."
}
