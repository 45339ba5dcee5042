// Package jsontext writes JSON as states and ledgers keep it: compact, and with the characters that it was given.
package jsontext

import (
	"bytes"
	"encoding/json"
)

var null = json.RawMessage("null")

// Encode returns v as JSON without escaping HTML: parameters and receipts are kept as they were given.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Compact returns v as compact JSON, null for nil, or an error when it is not JSON.
func Compact(v json.RawMessage) (json.RawMessage, error) {
	if v == nil {
		return null, nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// OrNull returns v, or null for nothing.
func OrNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return null
	}
	return v
}
