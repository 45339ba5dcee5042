package graphadapter

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"superstep.dev/graphadapter/pregel"
)

// answerSchemas are those that answers were checked against last. Few graphs ask many kinds of questions, and each answer
// is checked several times on its way: reading the schema anew costs far more than the check.
var answerSchemas = schemas{byText: map[string]*jsonschema.Resolved{}}

// The bounds of what is kept.
const (
	maxSchemas     = 128
	maxSchemaBytes = 4 << 10
)

// schemas reads schemas, and keeps them. What is kept decides nothing. It is safe for concurrent use.
type schemas struct {
	mu     sync.Mutex
	byText map[string]*jsonschema.Resolved
}

func (s *schemas) of(text pregel.Value) (*jsonschema.Resolved, error) {
	s.mu.Lock()
	kept, ok := s.byText[string(text)]
	s.mu.Unlock()
	if ok {
		return kept, nil
	}
	read, err := readSchema(text)
	if err != nil || len(text) > maxSchemaBytes {
		return read, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byText) >= maxSchemas {
		clear(s.byText)
	}
	s.byText[string(text)] = read
	return read, nil
}

func readSchema(text pregel.Value) (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("the question's schema cannot be read: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the question's schema cannot be used: %w", err)
	}
	return resolved, nil
}
