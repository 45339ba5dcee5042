// Package trace holds what recorded traces are made of, JSON values, and how two of them are compared. The engines' answers
// and new recordings are both held to recorded traces by it.
package trace

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

// Decode decodes one JSON text.
func Decode(text []byte) (any, error) {
	var v any
	if err := decodeWith(text, &v, func(d *json.Decoder) { d.UseNumber() }); err != nil {
		return nil, err
	}
	return integers(v), nil
}

// DecodeStrict decodes one JSON text into a struct and refuses fields that the struct does not have: a misspelt field
// in a case must not silently test nothing.
func DecodeStrict(text []byte, into any) error {
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

// Member is one key and value of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members decodes a JSON object in document order. A repeated key is an error.
func Members(text []byte) ([]Member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("want an object, got %s", Brief(string(text)))
	}
	var out []Member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := Member{Name: key.(string)} // the decoder lets only strings stand here
		if seen[m.Name] {
			return nil, fmt.Errorf("the key %q is there twice", m.Name)
		}
		seen[m.Name] = true
		if err := d.Decode(&m.Value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return out, nil
}

// Canonical is v as JSON with sorted keys and no white space. The value must be made of the types above.
func Canonical(v any) string {
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
		for i, key := range Keys(v) {
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

func Keys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Sort sorts values by their canonical JSON, in place.
func Sort(values []any) []any {
	slices.SortFunc(values, func(a, b any) int { return strings.Compare(Canonical(a), Canonical(b)) })
	return values
}

// Encode is v as the engine takes it.
func Encode(v any) json.RawMessage { return json.RawMessage(Canonical(v)) }

// Brief shortens a text for an error message.
func Brief(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
