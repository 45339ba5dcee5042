package graph_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// TestANodeThatDoesNotLookAtItsContextIsOutOfTime: the run fails, as it does with a node that does, whatever the node comes back with.
func TestANodeThatDoesNotLookAtItsContextIsOutOfTime(t *testing.T) {
	const limit = 300 * time.Millisecond
	var runs, next atomic.Int32
	deaf := func(ctx context.Context, s asked) (asked, error) {
		if runs.Add(1) == 1 {
			<-time.After(2 * limit) // its work
		}
		s.Out.Append("deaf")
		return s, nil
	}
	asks := func(ctx context.Context, s asked) (asked, error) {
		if runs.Add(1) == 1 {
			<-time.After(2 * limit)
			if _, err := superstep.Interrupt[bool](ctx, "late?"); err != nil {
				return s, err
			}
		}
		s.Out.Append("deaf")
		return s, nil
	}
	after := func(_ context.Context, s asked) (asked, error) {
		next.Add(1)
		s.Out.Append("next")
		return s, nil
	}
	chain := func(name string, first func(context.Context, asked) (asked, error)) *superstep.Graph[asked] {
		g := superstep.NewStateGraph[asked](name)
		g.AddNode("deaf", first)
		g.AddNode("next", after)
		g.AddEdge(superstep.Start, "deaf")
		g.AddEdge("deaf", "next")
		return g.MustCompile()
	}
	inner := superstep.NewStateGraph[asked]("inner")
	inner.AddNode("deaf", deaf)
	inner.AddEdge(superstep.Start, "deaf")
	outer := superstep.NewStateGraph[asked]("out-of-time-within")
	outer.AddSubgraph("sub", inner.MustCompile())
	outer.AddNode("next", after)
	outer.AddEdge(superstep.Start, "sub")
	outer.AddEdge("sub", "next")
	for name, g := range map[string]*superstep.Graph[asked]{
		"a node": chain("out-of-time", deaf), "one that asks": chain("out-of-time-asks", asks), "in a subgraph": outer.MustCompile(),
	} {
		t.Run(name, func(t *testing.T) {
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				for _, mode := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
					runs.Store(0)
					next.Store(0)
					th := g.Thread(rt, graphtest.ThreadID(t))
					r, err := th.Invoke(t.Context(), asked{}, superstep.WithStepTimeout(limit), superstep.WithDurability(mode))
					require.Error(t, err, "%s: it is %s with %v", mode, r.Status, r.Output.Out.Get())
					assert.ErrorContains(t, err, "step timeout")
					assert.Equal(t, thread.StatusTimedOut, r.Status)
					assert.Zero(t, next.Load(), "the next superstep ran")
					r, err = th.Invoke(t.Context(), nil)
					require.NoError(t, err)
					assert.Equal(t, []string{"deaf", "next"}, r.Output.Out.Get())
				}
			}, g)
		})
	}
}
