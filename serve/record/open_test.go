package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// Answers by id reach the questions that are open; a run that is left without any answers nothing.
func TestAnswersToOpenQuestions(t *testing.T) {
	open := []thread.Question{{ID: "q-1"}, {ID: "q-2"}}
	byID := func(ids ...string) *pregel.Resume {
		r := &pregel.Resume{ByID: map[string]pregel.Value{}}
		for _, id := range ids {
			r.ByID[id] = pregel.Value(`true`)
		}
		return r
	}
	scalar := &pregel.Resume{Scalar: pregel.Value(`true`)}
	for _, c := range []struct{ given, want *pregel.Resume }{
		{nil, nil},
		{scalar, scalar},
		{byID("q-1", "q-2"), byID("q-1", "q-2")},
		{byID("q-1", "q-3"), byID("q-1")},
		{byID("q-3"), nil},
	} {
		require.Equal(t, c.want, toOpen(thread.StartRequest{Resume: c.given}, open).Resume)
	}
	require.Equal(t, byID("q-3"), toOpen(thread.StartRequest{Resume: byID("q-3"), Checkpoint: "c"}, open).Resume)
}
