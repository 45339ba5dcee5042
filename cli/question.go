package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"superstep.dev"
)

// valueText shows a value as people read it.
func valueText(v json.RawMessage) string { return superstep.Question{Value: v}.Text() }

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
