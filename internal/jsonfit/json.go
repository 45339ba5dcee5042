package jsonfit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// Decode decodes one JSON value into a Go value. Numbers inside an any become json.Number: a float64 would round
// int64.
func Decode(raw []byte, into any) error { return decodeWith(raw, into, false) }

// DecodeStrict is Decode that refuses object keys that the Go type does not have.
func DecodeStrict(raw []byte, into any) error { return decodeWith(raw, into, true) }

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

// Encode encodes a Go value as compact JSON. It leaves <, > and & as they are: stored values are read by people
// and never pasted into HTML.
func Encode(v any) (pregel.Value, error) {
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

// KindOf returns what a JSON value is: one of { [ " 0 t n, with 0 for every number and t for both booleans.
func KindOf(raw pregel.Value) byte {
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

// Found describes a JSON value for an error message, in a few words.
func Found(raw pregel.Value) string {
	const most = 40
	text := strings.Join(strings.Fields(string(raw)), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	switch KindOf(raw) {
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

// Misfit says that a JSON value does not decode into a Go type. Path leads to the part that does not, inside the value.
type Misfit struct {
	Path     string
	Expected string
	Found    string
	Reason   string // instead of expected and found
}

// Error implements error in one line.
func (m *Misfit) Error() string {
	if m.Reason != "" {
		return m.Reason
	}
	return fmt.Sprintf("expected %s, found %s", m.Expected, m.Found)
}

// CheckSingle refuses what a T channel cannot take as an update: null only fits a type that has one.
func CheckSingle[T any](raw pregel.Value) error {
	t := reflect.TypeFor[T]()
	if KindOf(raw) == 'n' && !takesNull(t) {
		return &Misfit{Expected: TypeName(t), Found: "null"}
	}
	var v T
	return Explain(DecodeStrict(raw, &v), t, raw)
}

// CheckUpdate returns a check for channels whose updates are of one JSON kind.
func CheckUpdate[U any](kind byte) func(pregel.Value) error {
	return func(raw pregel.Value) error {
		t := reflect.TypeFor[U]()
		if KindOf(raw) != kind {
			return &Misfit{Expected: TypeName(t), Found: Found(raw)}
		}
		var v U
		return Explain(DecodeStrict(raw, &v), t, raw)
	}
}

// Explain turns an error of encoding/json into one that a caller without the source can act on.
func Explain(err error, t reflect.Type, raw pregel.Value) error {
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &Misfit{Path: wrong.Field, Expected: TypeName(wrong.Type), Found: withArticle(wrong.Value)}
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &Misfit{Expected: TypeName(t), Found: Found(raw), Reason: "it is not JSON: " + syntax.Error()}
	}
	return &Misfit{Reason: fmt.Sprintf("it does not fit %s: %s", TypeName(t), strings.TrimPrefix(err.Error(), "json: "))}
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

// TypeName names a Go type in messages for people.
func TypeName(t reflect.Type) string {
	if t == reflect.TypeFor[any]() {
		return "any"
	}
	return t.String()
}

// decodePlain decodes what most state fields are, a number, a word or a yes or no, at a fraction of what encoding/json
// takes. It reports false for anything that is not written in the plainest way: encoding/json then decides.
func decodePlain(raw []byte, into any) bool {
	switch at := into.(type) {
	case *int:
		n, ok := pregel.SmallInteger(raw)
		if ok = ok && int64(int(n)) == n; ok {
			*at = int(n)
		}
		return ok
	case *int64:
		n, ok := pregel.SmallInteger(raw)
		if ok {
			*at = n
		}
		return ok
	case *string:
		ok := isPlainString(raw)
		if ok {
			*at = string(raw[1 : len(raw)-1])
		}
		return ok
	case *bool:
		yes := string(raw) == "true"
		if ok := yes || string(raw) == "false"; !ok {
			return false
		}
		*at = yes
		return true
	}
	return false
}

// encodePlain is the like of decodePlain; nil stands for anything else.
func encodePlain(v any) pregel.Value {
	switch v := v.(type) {
	case int:
		return strconv.AppendInt(nil, int64(v), 10)
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case bool:
		return strconv.AppendBool(nil, v)
	case string:
		raw := make(pregel.Value, 0, len(v)+2)
		if raw = append(append(append(raw, '"'), v...), '"'); isPlainString(raw) {
			return raw
		}
	}
	return nil
}

// isPlainString reports whether raw is a JSON string of ASCII characters of which none is escaped.
func isPlainString(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// WithoutValue is what Error says, but for the value that does not fit. A reason that names a field is of this package's
// making; any other is a decoder's, which may quote what it has read.
func (m *Misfit) WithoutValue(of string) string {
	switch {
	case strings.Contains(m.Reason, "unknown field"):
		return m.Reason
	case m.Reason != "":
		return "it does not fit " + of
	}
	kind := strings.Fields(m.Found)
	return strings.TrimPrefix(fmt.Sprintf("%s: expected %s, found %s", m.Path, m.Expected, strings.Join(kind[:min(2, len(kind))], " ")), ": ")
}

// AppendMember adds a member to an object that is not closed yet.
func AppendMember(object pregel.Value, name string, v pregel.Value) pregel.Value {
	if len(object) > 1 {
		object = append(object, ',')
	}
	key, _ := Encode(name) // a string always encodes
	object = append(object, key...)
	object = append(object, ':')
	return append(object, v...)
}
