package superstep_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

type patience struct {
	Log superstep.List[string] `json:"log"`
}

// A Send's own timeouts replace those of its node, also when the thread stood at a breakpoint between the two. A retry
// has them again, and what the others did is kept.
func TestSendWithin(t *testing.T) {
	var runs atomic.Int64
	g := superstep.NewStateGraph[patience]("patience")
	g.AddNode("fan", func(_ context.Context, s patience) (patience, error) { return s, nil })
	superstep.AddInputNode(g, "wait", func(ctx context.Context, forIt bool) (superstep.Command[patience], error) {
		runs.Add(1)
		var c superstep.Command[patience]
		if forIt {
			<-ctx.Done()
			return c, ctx.Err()
		}
		c.Update.Log.Append("done")
		return c, nil
	}, superstep.WithTimeout(0, time.Hour),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2, InitialInterval: -1, NoJitter: true}))
	superstep.AddInputErrorHandler(g, "wait",
		func(_ context.Context, _ bool, failure *superstep.NodeError) (superstep.Command[patience], error) {
			var c superstep.Command[patience]
			c.Update.Log.Append(failure.Type + ": " + failure.Message)
			return c, nil
		})
	g.AddEdge(superstep.Start, "fan")
	g.AddConditionalEdges("fan", func(context.Context, patience) ([]superstep.Target, error) {
		return append(superstep.SendWithin(50*time.Millisecond, 0, "wait", true), superstep.Send("wait", false)...), nil
	})
	compiled := g.MustCompile(superstep.WithInterruptBefore("wait"))
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		runs.Store(0)
		thread := compiled.Thread(rt, graphtest.ThreadID(t))
		_, err := thread.Invoke(t.Context(), patience{})
		require.NoError(t, err)
		require.Zero(t, runs.Load(), "the thread stands at the breakpoint")
		got, err := thread.Invoke(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, []string{
			`Timeout: node "wait" of graph "patience" ran longer than 50ms (its run timeout)`, "done",
		}, got.Output.Log.Get())
		assert.Equal(t, int64(3), runs.Load(), "the one out of time is retried once")
	}, compiled)
}
