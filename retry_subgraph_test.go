package superstep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// A subgraph's node is retried by its own policy, which decides by the failure's type: the first policy that takes it
// counts, and what had finished inside does not run again.
func TestASubgraphIsRetriedByThePolicyOfItsNode(t *testing.T) {
	var first, second, asked atomic.Int64
	var fatal atomic.Bool
	inner := superstep.NewStateGraph[counter]("inner")
	inner.AddNode("first", func(_ context.Context, s counter) (counter, error) {
		first.Add(1)
		s.Log.Append("first")
		return s, nil
	})
	inner.AddNode("second", func(_ context.Context, s counter) (counter, error) {
		switch n := second.Add(1); {
		case fatal.Load():
			return s, errors.New("fatal")
		case n < 4:
			return s, declined{"not yet"}
		}
		s.Log.Append("second")
		return s, nil
	})
	inner.AddEdge(superstep.Start, "first")
	inner.AddEdge("first", "second")
	g := superstep.NewStateGraph[counter]("outer")
	g.AddSubgraph("sub", inner.MustCompile(),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 9, InitialInterval: -1, NoJitter: true, RetryOn: func(err error) bool {
			asked.Add(1)
			var failure *superstep.NodeError
			return errors.As(err, &failure) && failure.Type == "declined" && failure.Graph == "inner" && failure.Node == "second"
		}}),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2, InitialInterval: -1, NoJitter: true}))
	g.AddEdge(superstep.Start, "sub")
	compiled := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		first.Store(0)
		second.Store(0)
		asked.Store(0)
		fatal.Store(false)
		got, err := compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), counter{})
		require.NoError(t, err)
		assert.Equal(t, []string{"first", "second"}, got.Output.Log.Get())
		assert.Equal(t, int64(1), first.Load())
		assert.Equal(t, int64(4), second.Load())
		assert.Equal(t, int64(3), asked.Load())

		second.Store(0)
		fatal.Store(true)
		_, err = compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), counter{})
		var failed *superstep.NodeError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "fatal", failed.Message)
		assert.Equal(t, int64(2), second.Load(), "the second policy takes what the first does not")
	}, compiled)
}
