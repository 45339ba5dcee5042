package screen

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// schemaOf returns the JSON schema of a Go type.
func schemaOf[T any](t *testing.T) *jsonschema.Schema {
	schema, err := jsonschema.For[T](nil)
	require.NoError(t, err)
	return schema
}

type verdict struct {
	Approved bool     `json:"approved"`
	Reason   string   `json:"reason,omitempty"`
	Score    float64  `json:"score"`
	Tags     []string `json:"tags"`
	Inner    struct {
		Count int64 `json:"count"`
	} `json:"inner"`
}

// TestSampleAnswerFits holds the answer that Next shows against the schema it is made from.
func TestSampleAnswerFits(t *testing.T) {
	for name, schema := range map[string]*jsonschema.Schema{
		"boolean": schemaOf[bool](t), "string": schemaOf[string](t), "integer": schemaOf[int64](t),
		"number": schemaOf[float64](t), "list": schemaOf[[]string](t), "map": schemaOf[map[string]int](t),
		"pointer": schemaOf[*bool](t), "struct": schemaOf[verdict](t), "any": schemaOf[any](t),
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(schema)
			require.NoError(t, err)
			resolved, err := schema.Resolve(nil)
			require.NoError(t, err)
			var answer any
			require.NoError(t, json.Unmarshal([]byte(SampleAnswer(text)), &answer))
			require.NoError(t, resolved.Validate(answer), SampleAnswer(text))
		})
	}
}

func TestSampleAnswer(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                    `"…"`,
		`true`:                                `"…"`,
		`not json`:                            `"…"`,
		`{"type":"boolean"}`:                  `true`,
		`{"type":["null","boolean"]}`:         `true`,
		`{"type":"null"}`:                     `null`,
		`{"enum":["yes","no"]}`:               `"yes"`,
		`{"const":{"a": 1}}`:                  `{"a":1}`,
		`{"type":"string","default":"later"}`: `"later"`,
		`{"type":"integer","minimum":5}`:      `5`,
		`{"anyOf":[{"type":"integer"},{"type":"string"}]}`: `0`,
		`{"type":"object"}`: `{}`,
		`{"type":"object","properties":{"b":{},"a":true}}`:           `{"a":"…","b":"…"}`,
		`{"type":"object","required":["x"],"properties":{"y":true}}`: `{"x":"…"}`,
	} {
		require.Equal(t, want, SampleAnswer(json.RawMessage(schema)), schema)
	}
}

// TestSampleAnswerEnds: a schema nests as deep as its author likes, and may come from anywhere.
func TestSampleAnswerEnds(t *testing.T) {
	schema := `{"type":"boolean"}`
	for range 50 {
		schema = `{"type":"object","properties":{"a":` + schema + `}}`
	}
	require.Equal(t, `{"a":{"a":{"a":{"a":"…"}}}}`, SampleAnswer(json.RawMessage(schema)))
}
