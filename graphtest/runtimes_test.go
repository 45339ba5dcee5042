package graphtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

func graph() *superstep.Graph[State] {
	g := superstep.NewStateGraph[State]("graphtest-refund")
	g.AddNode("approve", approve)
	g.AddNode("note", func(_ context.Context, s State) (State, error) {
		s.Receipt.Set("rf-" + s.Order.Get())
		return s, nil
	})
	g.AddEdge(superstep.Start, "approve")
	g.AddEdge("approve", "note")
	return g.MustCompile()
}

func TestRuntimes(t *testing.T) {
	g := graph()
	ran := map[string]bool{}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		ran[t.Name()] = true
		th := g.Thread(rt, graphtest.ThreadID(t))
		result, err := th.Invoke(t.Context(), order())
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, result.Status)
		_, err = th.Resume(t.Context(), "sure")
		require.ErrorIs(t, err, thread.ErrBadInput)
		result, err = th.Resume(t.Context(), true)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, result.Status)
		require.Equal(t, "rf-o-7", result.Output.Receipt.Get())
	}, g)
	require.Equal(t, map[string]bool{"TestRuntimes/memory": true, "TestRuntimes/temporal": true}, ran)
}

func TestRuntimesInParallel(t *testing.T) {
	g := graph()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		t.Parallel()
		result, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), order())
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, result.Status)
	}, g)
}
