package superstep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// decodeJSON decodes one JSON value into a Go value. Numbers inside an any become json.Number: a float64 would round
// int64.
func decodeJSON(raw []byte, into any) error { return decodeWith(raw, into, false) }

// decodeStrict is decodeJSON that refuses object keys that the Go type does not have.
func decodeStrict(raw []byte, into any) error { return decodeWith(raw, into, true) }

func decodeWith(raw []byte, into any, strict bool) error {
	if decodePlain(raw, into) {
		return nil
	}
	if isPlain(reflect.TypeOf(into)) && json.Unmarshal(raw, into) == nil {
		return nil // no number can end up in an any, and no key is unknown
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("unexpected end of JSON input")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// isPlain reports whether a type is a scalar, or pointers to one or lists of them: what a decoder need not be told about,
// which costs more than the decoding.
func isPlain(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() <= reflect.Float64 || t.Kind() == reflect.String
}

// encodeJSON encodes a Go value as compact JSON. It leaves <, > and & as they are: stored values are read by people
// and never pasted into HTML.
func encodeJSON(v any) (pregel.Value, error) {
	if raw := encodePlain(v); raw != nil {
		return raw, nil
	}
	if raw, ok := v.(json.RawMessage); ok && raw == nil {
		return pregel.Null, nil
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// kindOf returns what a JSON value is: one of { [ " 0 t n, with 0 for every number and t for both booleans.
func kindOf(raw pregel.Value) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 0
	}
	switch raw[0] {
	case '{', '[', '"', 't', 'n':
		return raw[0]
	case 'f':
		return 't'
	}
	return '0'
}

// found describes a JSON value for an error message, in a few words.
func found(raw pregel.Value) string {
	const most = 40
	text := strings.Join(strings.Fields(string(raw)), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	switch kindOf(raw) {
	case 0:
		return "nothing"
	case '{':
		return "the object " + text
	case '[':
		return "the list " + text
	case '"':
		return "the string " + text
	case '0':
		return "the number " + text
	case 'n':
		return "null"
	}
	return text
}

// misfit says that a JSON value does not decode into a Go type. Path leads to the part that does not, inside the value.
type misfit struct {
	path     string
	expected string
	found    string
	reason   string // instead of expected and found
}

func (m *misfit) Error() string {
	if m.reason != "" {
		return m.reason
	}
	return fmt.Sprintf("expected %s, found %s", m.expected, m.found)
}

// checkSingle refuses what a T channel cannot take as an update: null only fits a type that has one.
func checkSingle[T any](raw pregel.Value) error {
	t := reflect.TypeFor[T]()
	if kindOf(raw) == 'n' && !takesNull(t) {
		return &misfit{expected: typeName(t), found: "null"}
	}
	var v T
	return explain(decodeStrict(raw, &v), t, raw)
}

// checkUpdate returns a check for channels whose updates are of one JSON kind.
func checkUpdate[U any](kind byte) func(pregel.Value) error {
	return func(raw pregel.Value) error {
		t := reflect.TypeFor[U]()
		if kindOf(raw) != kind {
			return &misfit{expected: typeName(t), found: found(raw)}
		}
		var v U
		return explain(decodeStrict(raw, &v), t, raw)
	}
}

// explain turns an error of encoding/json into one that a caller without the source can act on.
func explain(err error, t reflect.Type, raw pregel.Value) error {
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &misfit{path: wrong.Field, expected: typeName(wrong.Type), found: withArticle(wrong.Value)}
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &misfit{expected: typeName(t), found: found(raw), reason: "it is not JSON: " + syntax.Error()}
	}
	return &misfit{reason: fmt.Sprintf("it does not fit %s: %s", typeName(t), strings.TrimPrefix(err.Error(), "json: "))}
}

// withArticle completes encoding/json's word for a value, such as "string" or "number 1.5".
func withArticle(value string) string {
	switch {
	case strings.HasPrefix(value, "number "):
		return "the " + value
	case value == "array" || value == "object":
		return "an " + value
	}
	return "a " + value
}

func takesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// typeName names a Go type in messages for people.
func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[any]() {
		return "any"
	}
	return t.String()
}
