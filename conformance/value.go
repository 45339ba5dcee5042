package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A JSON value is held as nil, bool, int64, string, []any or map[string]any. A number that is no int64 stays a
// json.Number, so that what an engine answered is compared and shown exactly as it was written.

// decodeValue decodes one JSON text.
func decodeValue(text []byte) (any, error) {
	var v any
	if err := decodeWith(text, &v, func(d *json.Decoder) { d.UseNumber() }); err != nil {
		return nil, err
	}
	return integers(v), nil
}

// decodeStrict decodes one JSON text into a struct and refuses fields that the struct does not have: a misspelt field
// in a case must not silently test nothing.
func decodeStrict(text []byte, into any) error {
	return decodeWith(text, into, func(d *json.Decoder) { d.DisallowUnknownFields() })
}

func decodeWith(text []byte, into any, option func(*json.Decoder)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	option(d)
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("empty text where JSON was expected")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the JSON value")
	}
	return nil
}

// integers replaces the numbers in v by int64 where they fit.
func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

// member is one key and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// decodeMembers decodes a JSON object in document order. A repeated key is an error.
func decodeMembers(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("want an object, got %s", brief(string(text)))
	}
	var out []member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: key.(string)} // the decoder lets only strings stand here
		if seen[m.name] {
			return nil, fmt.Errorf("the key %q is there twice", m.name)
		}
		seen[m.name] = true
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return out, nil
}

// canonical is v as JSON with sorted keys and no white space. The value must be made of the types above.
func canonical(v any) string {
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case json.Number:
		b.WriteString(v.String())
	case string:
		writeString(b, v)
	case []any:
		for i, item := range v {
			b.WriteByte(",["[first(i)])
			writeCanonical(b, item)
		}
		closeList(b, len(v), "[]")
	case map[string]any:
		for i, key := range sortedKeys(v) {
			b.WriteByte(",{"[first(i)])
			writeString(b, key)
			b.WriteByte(':')
			writeCanonical(b, v[key])
		}
		closeList(b, len(v), "{}")
	default:
		panic(fmt.Sprintf("conformance: %T is no JSON value", v))
	}
}

// first is 1 for the first element, which opens the list, and 0 for those that follow a comma.
func first(i int) int {
	if i == 0 {
		return 1
	}
	return 0
}

func closeList(b *strings.Builder, n int, brackets string) {
	if n == 0 {
		b.WriteString(brackets)
		return
	}
	b.WriteByte(brackets[1])
}

func writeString(b *strings.Builder, s string) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(fmt.Sprintf("conformance: encoding a string: %v", err)) // no string fails to encode
	}
	b.Write(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// sortCanonical sorts values by their canonical JSON, in place.
func sortCanonical(values []any) []any {
	slices.SortFunc(values, func(a, b any) int { return strings.Compare(canonical(a), canonical(b)) })
	return values
}

// encode is v as the engine takes it.
func encode(v any) json.RawMessage { return json.RawMessage(canonical(v)) }

// brief shortens a text for an error message.
func brief(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
