package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// splitPointer returns the names in a JSON pointer (RFC 6901).
func splitPointer(pointer string) ([]string, error) {
	if problem := lineProblem(pointer, MaxReason); problem != "" {
		return nil, errors.New(problem)
	}
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, errors.New("the JSON pointer " + quote(pointer) + " does not begin with /")
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		plain := strings.NewReplacer("~0", "", "~1", "").Replace(name)
		if strings.Contains(plain, "~") {
			return nil, errors.New("in the JSON pointer " + quote(pointer) + " ~ is spelled ~0, and / within a name ~1")
		}
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return names, nil
}

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

func decode(value json.RawMessage) (any, error) {
	if !json.Valid(value) {
		return nil, errors.New("it is not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}

// encode returns a decoded value as JSON without escaping what only HTML needs.
func encode(value any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // a decoded value always encodes
	return bytes.TrimSpace(out.Bytes())
}
