package workflows

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"superstep.dev/graphadapter/pregel"
)

// checkAnswer holds an answer to the question's schema: whoever asked it never sees a value of another type.
func checkAnswer(q pregel.Question, value pregel.Value) error {
	var instance any
	if err := json.Unmarshal(value, &instance); err != nil {
		return refuse(ErrTypeBadAnswer, "the answer to question %s is not JSON: %v", q.ID, err)
	}
	if len(q.Schema) == 0 || pregel.IsNull(q.Schema) {
		return nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(q.Schema, &schema); err != nil {
		return refuse(ErrTypeBadAnswer, "the schema of question %s cannot be read: %v", q.ID, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return refuse(ErrTypeBadAnswer, "the schema of question %s cannot be used: %v", q.ID, err)
	}
	if err := resolved.Validate(instance); err != nil {
		return refuse(ErrTypeBadAnswer, "the answer to question %s does not fit: %v", q.ID, err)
	}
	return nil
}
