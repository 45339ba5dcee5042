package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of what is stored and asked. A call beyond one fails with [ErrBadInput].
const (
	MaxDepth          = 32      // labels of a namespace
	MaxNamespaceBytes = 1 << 10 // of all its labels together, with one byte between two
	MaxKeyBytes       = 1 << 10
	MaxValueBytes     = 1 << 20  // of an item's JSON
	MaxFilterBytes    = 16 << 10 // of a filter's JSON
	MaxTextBytes      = 32 << 10 // of a query
	MaxLimit          = 1000     // items or namespaces of a page
	MaxOffset         = 100_000
	MaxPageBytes      = 32 << 20 // of a page's values
	MaxVectors        = 100      // of an item
	MaxDims           = 16_000   // of a vector
	MaxTTL            = 100 * 365 * 24 * time.Hour
	maxIDBytes        = 256 // of a write's id
	maxPaths          = 32  // that are embedded
)

// Item is what is stored under a namespace and a key.
type Item struct {
	Namespace []string `json:"namespace"`
	Key       string   `json:"key"`
	// Value is a JSON object, as it was put.
	Value json.RawMessage `json:"value"`
	// Created is when the item was first put, Updated when last, in UTC to the microsecond by the clock of who put it.
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
	// Version counts the writes since the item was created, from 1.
	Version int64 `json:"version"`
	// Expires is when the item is gone, unless it is read or written before; zero for never.
	Expires time.Time `json:"expires_at,omitzero"`
}

// Decode reads the value into what into points to. Members that it does not have are ignored, as by encoding/json.
func (i Item) Decode(into any) error {
	if err := json.Unmarshal(i.Value, into); err != nil {
		return &Error{Kind: ErrBadInput, Namespace: i.Namespace, Key: i.Key, Message: fmt.Sprintf("it does not decode as %T", into), Cause: err}
	}
	return nil
}

// Hit is an item that a search found.
type Hit struct {
	Item
	// Score is how near the item's nearest vector is to the query's, as the cosine of their angle; nil where nothing was compared.
	Score *float64 `json:"score"`
}

// reservedRoot is a label that LangGraph keeps for itself at the root.
const reservedRoot = "langgraph"

// CheckNamespace says why a namespace cannot be one: it has at least one label, no label is empty or has a period or a control
// character in it, and the first is not "langgraph".
func CheckNamespace(namespace []string) error {
	if len(namespace) == 0 {
		return refuse("the namespace is empty: it needs a label")
	}
	if namespace[0] == reservedRoot {
		return refuse("the first label of a namespace cannot be %q, which LangGraph keeps for itself", reservedRoot)
	}
	return checkLabels("namespace", namespace)
}

// checkLabels holds the labels of a namespace, or of a part of one, to their bounds.
func checkLabels(what string, labels []string) error {
	if len(labels) > MaxDepth {
		return refuse("the %s has %d labels, the most is %d", what, len(labels), MaxDepth)
	}
	total := len(labels)
	for _, label := range labels {
		total += len(label)
		switch {
		case label == "":
			return refuse("a label of the %s is empty", what)
		case strings.Contains(label, "."):
			return refuse("the label %.100q of the %s has a period in it", label, what)
		case !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl):
			return refuse("the label %.100q of the %s is no printable text", label, what)
		}
	}
	if total-1 > MaxNamespaceBytes {
		return refuse("the %s has %d bytes, the most is %d", what, total-1, MaxNamespaceBytes)
	}
	return nil
}

// CheckKey says why a key cannot be one: it is a text of 1 to [MaxKeyBytes] bytes without control characters.
func CheckKey(key string) error {
	switch {
	case key == "":
		return refuse("the key is empty")
	case len(key) > MaxKeyBytes:
		return refuse("the key has %d bytes, the most is %d", len(key), MaxKeyBytes)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return refuse("the key %.100q is no printable text", key)
	}
	return nil
}

// encode makes an item's JSON of a value, nil of null, and refuses what is no object or too large.
func encode(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value) // compact, also where it is JSON already
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Message: fmt.Sprintf("the value of type %T does not encode as JSON", value), Cause: err}
	}
	switch {
	case string(text) == "null":
		return nil, nil
	case len(text) > MaxValueBytes:
		return nil, refuse("the value has %d bytes as JSON, the most is %d", len(text), MaxValueBytes)
	case text[0] != '{':
		return nil, refuse("the value is no JSON object: an item is one, as in LangGraph")
	case !utf8.Valid(text):
		return nil, refuse("the value's JSON is no UTF-8")
	}
	return text, nil
}

// Within reports whether a namespace is the prefix or below it. The empty prefix has every namespace.
func Within(namespace, prefix []string) bool {
	return len(namespace) >= len(prefix) && slices.Equal(namespace[:len(prefix)], prefix)
}
