package superstep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// TestInvokeInsideNode calls a graph from a node's code: its question is the node's, and what it had finished is not
// run again when the node is.
func TestInvokeInsideNode(t *testing.T) {
	type State struct {
		Log superstep.List[string] `json:"log"`
	}
	var first, caller int
	inner := superstep.NewStateGraph[State]("inner")
	inner.AddNode("first", func(_ context.Context, s State) (State, error) {
		first++
		s.Log.Append("first")
		return s, nil
	})
	inner.AddNode("ask", func(ctx context.Context, s State) (State, error) {
		name, err := superstep.Interrupt[string](ctx, "who?")
		if err != nil {
			return s, err
		}
		s.Log.Append(name)
		return s, nil
	})
	inner.AddEdge(superstep.Start, "first")
	inner.AddEdge("first", "ask")
	called := inner.MustCompile()

	outer := superstep.NewStateGraph[State]("outer")
	outer.AddNode("caller", func(ctx context.Context, s State) (State, error) {
		caller++
		for range 2 {
			result, err := called.Invoke(ctx, map[string]any{})
			if err != nil {
				return s, err
			}
			s.Log.Append(result.Output.Log.Get()...)
		}
		return s, nil
	})
	outer.AddEdge(superstep.Start, "caller")
	g := outer.MustCompile()

	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		first, caller = 0, 0
		thread := g.Thread(rt, graphtest.ThreadID(t))
		result, err := thread.Invoke(t.Context(), map[string]any{})
		require.NoError(t, err)
		require.Len(t, result.Questions, 1)
		one := result.Questions[0].ID

		result, err = thread.Resume(t.Context(), "ann")
		require.NoError(t, err)
		require.Len(t, result.Questions, 1)
		require.NotEqual(t, one, result.Questions[0].ID, "the second call asks a question of its own")

		result, err = thread.Resume(t.Context(), "bob")
		require.NoError(t, err)
		require.Equal(t, []string{"first", "ann", "first", "bob"}, result.Output.Log.Get())
		require.Equal(t, 2, first, "once for each call")
		require.Equal(t, 3, caller)
	}, g)
}
