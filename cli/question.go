package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"superstep.dev"
)

// valueText shows a value as people read it: a string without its quotes, the text of an object that carries one, any
// other value as compact JSON.
func valueText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && isString(v) {
		return s
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) == nil {
		for _, field := range []string{"text", "question", "message"} {
			if text := object[field]; isString(text) && json.Unmarshal(text, &s) == nil && s != "" {
				return s
			}
		}
	}
	return compact(v)
}

// isString reports whether v is a JSON string.
func isString(v json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(v), []byte(`"`)) }

// compact returns JSON text without white space, anything else as it is.
func compact(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// questionLine shows a question in one line.
func questionLine(q superstep.Question) string {
	return q.ID + "  " + clean(valueText(q.Value))
}

// questionIDs lists questions for a message: "q-41c9 (approval), q-4777 (review)".
func questionIDs(questions []superstep.Question) string {
	parts := make([]string, len(questions))
	for i, q := range questions {
		parts[i] = q.ID + " (" + q.Node + ")"
	}
	return strings.Join(parts, ", ")
}
