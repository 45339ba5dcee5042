package superstep_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// TestThreadIDs: what cannot be an id is refused before anything is started, by both runtimes, with what is allowed.
func TestThreadIDs(t *testing.T) {
	bad := []string{"", " ", "\t", ".", "..", " r-7", "r-7 ", "日本", "r\n7", "r\x00", "\xff", "a\u202eb", strings.Repeat("x", 201)}
	for _, id := range bad {
		require.ErrorIs(t, superstep.CheckThreadID(id), superstep.ErrBadInput, "%q", id)
	}
	for _, id := range []string{"r", "r-7", "job/report-3", "it's me", "order:7", "...", strings.Repeat("x", 200)} {
		require.NoError(t, superstep.CheckThreadID(id), "%q", id)
	}
	require.ErrorContains(t, superstep.CheckThreadID("日本"), "letters, digits and the punctuation of ASCII are allowed")
	type state struct {
		Said superstep.Value[string] `json:"said"`
	}
	g := superstep.NewStateGraph[state]("ids")
	g.AddNode("say", func(_ context.Context, s state) (state, error) {
		s.Said.Set("it")
		return s, nil
	})
	g.AddEdge(superstep.Start, "say")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for _, id := range bad {
			require.ErrorIs(t, graph.Thread(rt, id).Start(t.Context(), state{}), superstep.ErrBadInput, "%q", id)
		}
	}, graph)
}

// TestNewThreads: an id that was made is guessed by nobody, and a thread that is to be new goes on with no other.
func TestNewThreads(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := superstep.NewThreadID("refund")
		require.Regexp(t, `^refund-[a-z2-7]{26}$`, id) // 130 bits
		require.False(t, seen[id])
		seen[id] = true
	}
	require.Regexp(t, `^thread-[a-z2-7]{26}$`, superstep.NewThreadID(strings.Repeat("ä", 10)))
}
