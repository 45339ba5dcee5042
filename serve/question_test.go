package serve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
)

// A question's two ids stand for one another, and what is no id of a question stays what it is.
func TestQuestionIDs(t *testing.T) {
	require.Regexp(t, `^[0-9a-f]{32}$`, questionOut("q-182f4438"))
	require.Equal(t, "q-182f4438", questionIn(questionOut("q-182f4438")))
	require.Equal(t, "q-182f4438", questionIn("q-182f4438"))
	for _, other := range []string{"", "q-", "a3f1", "d1ad05c6ee1f4a6ba0a5a4ad1c0a1f2e"} {
		require.Equal(t, other, questionIn(other))
	}
	for in, want := range map[string]string{
		`[{"id":"q-182f4438","value":{"id":"q-182f4438"}}]`: `[{"id":"` + questionOut("q-182f4438") + `","value":{"id":"q-182f4438"}}]`,
		`[]`: `[]`, `null`: `null`, `{"id":"q-182f4438"}`: `{"id":"q-182f4438"}`, `[7]`: `[7]`,
	} {
		require.JSONEq(t, want, string(questionsOut(json.RawMessage(in))))
	}
}

// An object is answers by their ids only when all of its members are.
func TestAnswersByID(t *testing.T) {
	byID := &pregel.Resume{ByID: map[string]pregel.Value{"q-182f4438": pregel.Value(`1`), "q-00000001": pregel.Value(`"b"`)}}
	require.Equal(t, byID, resumeOf(json.RawMessage(`{"`+questionOut("q-182f4438")+`":1,"q-00000001":"b"}`)))
	require.Equal(t, &pregel.Resume{ByID: map[string]pregel.Value{}}, resumeOf(json.RawMessage(`{}`)), "as in LangGraph")
	for _, plain := range []string{`true`, `{"q-182f4438":1,"verdict":2}`} {
		require.Equal(t, &pregel.Resume{Scalar: pregel.Value(plain)}, resumeOf(json.RawMessage(plain)))
	}
	const foreign = "d1ad05c6ee1f4a6ba0a5a4ad1c0a1f2e" // of no question of this server, yet no answer either
	require.Equal(t, &pregel.Resume{ByID: map[string]pregel.Value{foreign: pregel.Value(`1`)}}, resumeOf(json.RawMessage(`{"`+foreign+`":1}`)))
}
