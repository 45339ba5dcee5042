package thread_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
)

// A worker whose version of a node leads to a node that the run's graph does not have gives the task back: the engine would drop that way,
// and the run would end as if it had finished, or fail though its own version goes on.
func TestAWorkerOfOtherWaysGivesItsTasksBack(t *testing.T) {
	t.Parallel()
	goTo := func(node string) func(context.Context, rig.Payment) (superstep.Command[rig.Payment], error) {
		return func(ctx context.Context, s rig.Payment) (superstep.Command[rig.Payment], error) {
			_, err := superstep.Interrupt[bool](ctx, "go on?")
			return superstep.Command[rig.Payment]{Goto: superstep.To(node)}, err
		}
	}
	route := func(to []superstep.Target) func(context.Context, rig.Payment) ([]superstep.Target, error) {
		return func(context.Context, rig.Payment) ([]superstep.Target, error) { return to, nil }
	}
	asks := func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	}
	does := func(_ context.Context, s rig.Payment) (rig.Payment, error) {
		s.Log.Append("done")
		return s, nil
	}
	// Both versions of a graph have the nodes "ask" and "do"; the later one has "fresh" between them.
	version := func(later bool, ask func(g *superstep.StateGraph[rig.Payment], to string)) *superstep.Graph[rig.Payment] {
		g := superstep.NewStateGraph[rig.Payment]("ways")
		g.AddEdge(superstep.Start, "ask")
		g.AddNode("do", does)
		if !later {
			ask(g, "do")
			return g.MustCompile()
		}
		g.AddNode("fresh", does)
		g.AddEdge("fresh", "do")
		ask(g, "fresh")
		return g.MustCompile()
	}
	ways := map[string]func(g *superstep.StateGraph[rig.Payment], to string){
		"goto": func(g *superstep.StateGraph[rig.Payment], to string) { g.AddCommandNode("ask", goTo(to)) },
		"edge": func(g *superstep.StateGraph[rig.Payment], to string) {
			g.AddNode("ask", asks)
			g.AddConditionalEdges("ask", route(superstep.To(to)), to)
		},
		"send": func(g *superstep.StateGraph[rig.Payment], to string) {
			g.AddNode("ask", asks)
			g.AddConditionalEdges("ask", route(superstep.Send(to, map[string]any{})), to)
		},
		"parent": func(g *superstep.StateGraph[rig.Payment], to string) {
			inner := superstep.NewStateGraph[rig.Payment]("inner")
			inner.AddCommandNode("leave", func(ctx context.Context, s rig.Payment) (superstep.Command[rig.Payment], error) {
				_, err := superstep.Interrupt[bool](ctx, "go on?")
				return superstep.Command[rig.Payment]{Parent: superstep.ToParent(rig.Payment{}, superstep.To(to))}, err
			})
			inner.AddEdge(superstep.Start, "leave")
			g.AddSubgraph("ask", inner.MustCompile())
		},
	}
	server, err := temporal.Dial(temporal.Options{HostPort: testserver.Address(t)})
	require.NoError(t, err)
	defer server.Close()
	for mode, option := range map[string]superstep.RunOption{"sync": superstep.WithDurability(superstep.DurabilitySync), "fused": superstep.WithFused()} {
		for way, ask := range ways {
			t.Run(mode+" "+way, func(t *testing.T) {
				givenBack(t, server, version(false, ask), version(true, ask), option, `the way to node "fresh", which it took, is not in the run`, "done")
			})
		}
	}
}
