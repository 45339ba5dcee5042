package graphadapter

import (
	"encoding/json"
	"fmt"

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
