package graphadapter

import (
	"encoding/json"
	"errors"
	"fmt"

	"bytes"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// AnswerError says that an answer does not fit its question.
type AnswerError struct {
	// Graph, Node and Thread say where the question was asked, as far as known.
	Graph, Node, Thread string
	// Question is the question's id.
	Question string
	// Want is the type or schema that the answer should have.
	Want string
	Err  error
}

func (e *AnswerError) Error() string {
	where := ""
	if e.Node != "" {
		where = fmt.Sprintf(" of node %q, graph %q, thread %q", e.Node, e.Graph, e.Thread)
	}
	return fmt.Sprintf("the answer to question %s%s does not fit: %v (wanted: %s)", e.Question, where, e.Err, e.Want)
}

// Unwrap returns what does not fit.
func (e *AnswerError) Unwrap() error { return e.Err }

// CheckAnswer returns an [*AnswerError] when answer does not have the schema that the question recorded. It is a pure
// function of its arguments, so it may run in workflow code.
func CheckAnswer(question pregel.Question, answer pregel.Value) error {
	fail := func(err error) error {
		return &AnswerError{Question: question.ID, Want: string(question.Schema), Err: err}
	}
	var decoded any
	if err := json.Unmarshal(jsontext.OrNull(answer), &decoded); err != nil {
		if _, wide := errors.AsType[*json.UnmarshalTypeError](err); wide {
			return fail(errors.New("it holds a number that is out of range"))
		}
		return fail(fmt.Errorf("not JSON: %w", err))
	}
	if len(question.Schema) == 0 {
		return nil
	}
	schema, err := answerSchemas.of(question.Schema)
	if err == nil {
		err = schema.Validate(decoded)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

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
