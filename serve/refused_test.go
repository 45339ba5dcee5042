package serve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
)

// A resume that is an object of questions' ids, {} among them, answers these and nothing else; anything else is one answer.
func TestResumeOf(t *testing.T) {
	require.Equal(t, &pregel.Resume{ByID: map[string]pregel.Value{}}, resumeOf(json.RawMessage(`{}`)))
	require.Equal(t, &pregel.Resume{Scalar: pregel.Value(`null`)}, resumeOf(json.RawMessage(`null`)))
	require.Equal(t, &pregel.Resume{Scalar: pregel.Value(`{"a":1}`)}, resumeOf(json.RawMessage(`{"a":1}`)))
	for schema, takes := range map[string]bool{``: true, `{}`: true, `{"type":["null","string"]}`: true, `{"type":"string"}`: false, `{"type":"object"}`: false} {
		require.Equal(t, takes, takesNull(json.RawMessage(schema)), schema)
	}
}
