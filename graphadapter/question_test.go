package graphadapter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
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

// TestANumberOutOfRangeIsJSON: what refuses it does not say otherwise.
func TestANumberOutOfRangeIsJSON(t *testing.T) {
	err := CheckAnswer(pregel.Question{ID: "q-1"}, pregel.Value(`{"amount":1e400}`))
	if err == nil || !strings.Contains(err.Error(), "a number that is out of range") || strings.Contains(err.Error(), "not JSON") {
		t.Error(err)
	}
}

// TestSchemasAreKept: as many as there is room for, and what is too large is read each time.
func TestSchemasAreKept(t *testing.T) {
	s := schemas{byText: map[string]*jsonschema.Resolved{}}
	of := func(text string) *jsonschema.Resolved {
		schema, err := s.of(pregel.Value(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	if first, second := of(`{"type":"string"}`), of(`{"type":"string"}`); first != second {
		t.Error("the second time it was read again")
	}
	large := `{"type":"string","title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`
	if first, second := of(large), of(large); first == second {
		t.Error("a large one is kept")
	}
	for i := range 3 * maxSchemas {
		of(fmt.Sprintf(`{"minLength":%d}`, i))
	}
	if n := len(s.byText); n == 0 || n > maxSchemas {
		t.Errorf("%d are kept", n)
	}
	for range 2 {
		if _, err := s.of(pregel.Value(`{"type":7}`)); err == nil {
			t.Error("a schema that is none can be used")
		}
	}
}
