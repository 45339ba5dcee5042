package jsonfit

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type transfer struct {
	To     string            `json:"to"`
	Amount int64             `json:"amount"`
	Note   string            `json:"note,omitempty"`
	Lines  []transferLine    `json:"lines"`
	Tags   map[string]string `json:"tags"`
	Due    *time.Time        `json:"due"`
	Any    json.RawMessage   `json:"any"`
}

type transferLine struct {
	Item string `json:"item"`
}

type list struct {
	Value int   `json:"value"`
	Next  *list `json:"next"`
}

// TestComplete: what only a lenient decoder takes is refused, without a word of the values.
func TestComplete(t *testing.T) {
	const whole = `{"to":"ann","amount":1,"lines":[{"item":"s3cret"}],"tags":null,"due":null,"any":null}`
	require.NoError(t, Complete([]byte(whole), reflect.TypeFor[transfer]()))
	empty, err := Encode(transfer{})
	require.NoError(t, err)
	require.NoError(t, Complete(empty, reflect.TypeFor[transfer]()), "each value of the type is complete")
	for text, want := range map[string]string{
		`null`:         "it is null, and not object",
		`{"to":"ann"}`: `"amount" is missing`,
		`{"TO":"s3cret","amount":1,"lines":null,"tags":null,"due":null,"any":null}`:             `the name "to" is spelled in other letter case`,
		`{"to":null,"amount":1,"lines":null,"tags":null,"due":null,"any":null}`:                 "to: it is null, and not string",
		`{"to":"ann","amount":1,"lines":[{"Item":"s3cret"}],"tags":null,"due":null,"any":null}`: `lines[0]: the name "item" is spelled in other letter case`,
		`{"to":"ann","amount":1,"lines":[{}],"tags":null,"due":null,"any":null}`:                `lines[0]: "item" is missing`,
		`{"to":"ann","amount":1,"lines":[],"tags":{"a":null},"due":null,"any":null}`:            "tags.a: it is null, and not string",
	} {
		err := Complete([]byte(text), reflect.TypeFor[transfer]())
		require.EqualError(t, err, want, text)
	}
	require.Error(t, Complete([]byte(`null`), reflect.TypeFor[list]()))
	require.NoError(t, Complete([]byte(`{"value":1}`), reflect.TypeFor[list]()))
	require.NoError(t, Complete([]byte(`null`), reflect.TypeFor[any]()))
	require.NoError(t, Complete([]byte(`{"A":null}`), reflect.TypeFor[map[string]any]()))
}
