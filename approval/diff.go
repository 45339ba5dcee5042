package approval

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

func joinPointer(pointer, name string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Hidden is what people see in place of a secret.
const Hidden = "***"

func indexName(i int) string { return strconv.Itoa(i) }

// Masked returns params as people see them, with the values that the pointers name hidden, in whatever case their names are
// spelled. A pointer that names nothing hides nothing. What is not JSON is hidden as a whole.
func Masked(params json.RawMessage, secrets []string) json.RawMessage {
	if len(secrets) == 0 || len(params) == 0 {
		return params
	}
	value, err := decode(params)
	if err != nil {
		return encode(Hidden)
	}
	for _, secret := range secrets {
		names, err := splitPointer(secret)
		if err != nil {
			return encode(Hidden) // closed: nobody knows what it was to hide
		}
		value = hide(value, names)
	}
	return encode(value)
}

func hide(value any, names []string) any {
	if len(names) == 0 {
		return Hidden
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedNames(value) {
			if strings.EqualFold(name, names[0]) { // a tool in Go reads it all the same
				value[name] = hide(value[name], names[1:])
			}
		}
	case []any:
		if i, err := strconv.Atoi(names[0]); err == nil && indexName(i) == names[0] && 0 <= i && i < len(value) {
			value[i] = hide(value[i], names[1:])
		}
	}
	return value
}

// MaxChanges is the most that [Diff] tells.
const MaxChanges = 100

// Change is one difference between two parameters, for people.
type Change struct {
	// Path is a JSON pointer (RFC 6901), "" for the whole.
	Path string `json:"path"`
	// Before and Now are the values there, nil for none, with secrets hidden.
	Before json.RawMessage `json:"before,omitempty"`
	Now    json.RawMessage `json:"now,omitempty"`
}

// Diff returns what is different between two parameters: names in their order, lists by position. It tells the first
// [MaxChanges]; more says that there are others. Numbers are compared by value, so 1.0 is 1. What is not JSON differs as
// a whole, and is hidden.
func Diff(before, now json.RawMessage, secrets []string) (changes []Change, more bool) {
	if bytes.Equal(before, now) {
		return nil, false
	}
	var hidden [][]string
	was, err := decode(orNull(before))
	is, err2 := decode(orNull(now))
	for _, secret := range secrets {
		names, err3 := splitPointer(secret)
		hidden = append(hidden, names)
		if err3 != nil {
			hidden[len(hidden)-1] = nil // closed: nobody knows what it was to hide
		}
	}
	if err != nil || err2 != nil {
		return []Change{{Before: encode(Hidden), Now: encode(Hidden)}}, false
	}
	d := differ{}
	d.compare("", &was, &is, hidden)
	if len(d.changes) > MaxChanges {
		return d.changes[:MaxChanges], true
	}
	return d.changes, false
}

type differ struct{ changes []Change }

// compare adds the differences below path, nil being no value; hidden are the secrets from there on.
func (d *differ) compare(path string, was, is *any, hidden [][]string) {
	if len(d.changes) > MaxChanges {
		return
	}
	isSecret := slices.ContainsFunc(hidden, func(names []string) bool { return len(names) == 0 })
	if was != nil && is != nil {
		if !isSecret && d.inside(path, *was, *is, hidden) {
			return
		}
		if sameValue(*was, *is) {
			return
		}
	}
	d.changes = append(d.changes, Change{Path: path, Before: shown(was, hidden), Now: shown(is, hidden)})
}

// inside compares what two objects or two lists hold, and reports whether they are that.
func (d *differ) inside(path string, was, is any, hidden [][]string) bool {
	if was, is, ok := both[map[string]any](was, is); ok {
		for _, name := range sortedNames(was, is) {
			d.compare(joinPointer(path, name), at(was, name), at(is, name), below(hidden, name))
		}
		return true
	}
	if was, is, ok := both[[]any](was, is); ok {
		for i := range max(len(was), len(is)) {
			name := indexName(i)
			d.compare(joinPointer(path, name), item(was, i), item(is, i), below(hidden, name))
		}
		return true
	}
	return false
}

func both[T any](a, b any) (T, T, bool) {
	x, ok := a.(T)
	y, ok2 := b.(T)
	return x, y, ok && ok2
}

func at(object map[string]any, name string) *any {
	if v, has := object[name]; has {
		return &v
	}
	return nil
}

func item(list []any, i int) *any {
	if i < len(list) {
		return &list[i]
	}
	return nil
}

func below(hidden [][]string, name string) [][]string {
	var out [][]string
	for _, names := range hidden {
		if len(names) > 0 && strings.EqualFold(names[0], name) {
			out = append(out, names[1:])
		}
	}
	return out
}

func sameValue(a, b any) bool {
	x, err := Canonical(encode(a))
	y, err2 := Canonical(encode(b))
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

func shown(value *any, hidden [][]string) json.RawMessage {
	if value == nil {
		return nil
	}
	v := *value
	for _, names := range hidden {
		v = hide(v, names)
	}
	return encode(v)
}
