package graphadapter

import (
	"bytes"
	"encoding/json"

	"superstep.dev/graphadapter/pregel"
)

// QuestionText shows a value as people read it: a string without its quotes, the text of an object that carries one (as
// text, question, message or ask), any other value as compact JSON.
func QuestionText(v pregel.Value) string {
	var s string
	if isString(v) && json.Unmarshal(v, &s) == nil {
		return s
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) == nil {
		for _, field := range []string{"text", "question", "message", "ask"} {
			if text := object[field]; isString(text) && json.Unmarshal(text, &s) == nil && s != "" {
				return s
			}
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

func isString(v []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(v), []byte(`"`)) }
