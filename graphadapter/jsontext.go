package graphadapter

import (
	"bytes"
	"encoding/json"

	"superstep.dev/graphadapter/pregel"
)

// encode returns v as JSON without escaping HTML: parameters and receipts are kept as they were given.
func encode(v any) (pregel.Value, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// compact returns v as compact JSON, null for nil, or an error when it is not JSON.
func compact(v pregel.Value) (pregel.Value, error) {
	if v == nil {
		return pregel.Null, nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func orNull(v pregel.Value) pregel.Value {
	if len(v) == 0 {
		return pregel.Null
	}
	return v
}
