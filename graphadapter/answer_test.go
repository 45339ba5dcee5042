package graphadapter

import (
	"errors"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

func TestCheckAnswer(t *testing.T) {
	for _, c := range []struct {
		schema, answer string
		fits           bool
	}{
		{"", `{"anything":[1]}`, true},
		{"", "", true},
		{"", "{", false},
		{`{"type":"boolean"}`, `true`, true},
		{`{"type":"boolean"}`, `"true"`, false},
		{`{"type":"integer"}`, `9223372036854775807`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"enum":["a","b"]}`, `"b"`, true},
		{`{"enum":["a","b"]}`, `"c"`, false},
		{`{"type":"object","required":["a"]}`, `{}`, false},
		{`{"type":`, `1`, false},
		{`{"type":"nonsense"}`, `1`, false},
	} {
		err := CheckAnswer(pregel.Question{ID: "q-1", Schema: pregel.Value(c.schema)}, pregel.Value(c.answer))
		if c.fits != (err == nil) {
			t.Errorf("%s for %s: %v", c.answer, c.schema, err)
		}
		var wrong *AnswerError
		if err != nil && (!errors.As(err, &wrong) || wrong.Question != "q-1") {
			t.Errorf("%s for %s: %#v", c.answer, c.schema, err)
		}
	}
}
