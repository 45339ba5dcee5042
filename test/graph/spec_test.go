package graph_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/rig"
)

func TestUnreachableNodesAndNodesWithoutEdgesCompile(t *testing.T) {
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("island", pass)
	g.AddEdge(superstep.Start, superstep.End)
	_, err := g.Compile()
	assert.NoError(t, err)
}

// A run of this version of the graph goes on with what the worker has made of the graph, whatever the graph has.
func requireKnownFromHistory(t *testing.T, g *graphadapter.Graph) {
	t.Helper()
	text, err := json.Marshal(g.Spec)
	require.NoError(t, err)
	var read pregel.Spec
	require.NoError(t, json.Unmarshal(text, &read))
	require.True(t, g.Has(&read))
	read.Channels[0].Name = "another"
	require.False(t, g.Has(&read))
}

func TestCompileMakesTheSpec(t *testing.T) {
	type in struct {
		N     superstep.Value[int64]  `json:"n"`
		Extra superstep.Value[string] `json:"extra"`
	}
	type private struct {
		N      superstep.Value[int64]  `json:"n"`
		Secret superstep.Value[string] `json:"secret"`
	}
	type out struct {
		Log superstep.Value[[]string] `json:"log"`
	}
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("a", pass, superstep.WithDefer(), superstep.WithTaskQueue("gpu"), superstep.WithTimeout(time.Minute, time.Second),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 5}))
	superstep.AddInputNode(g, "b", func(context.Context, private) (superstep.Command[rig.Counter], error) {
		return superstep.Command[rig.Counter]{}, nil
	})
	g.AddSubgraph("c", small(), superstep.WithSubgraphMemory(superstep.SubgraphMemoryThread), superstep.WithRetry(superstep.RetryPolicy{}))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge(superstep.Start, "a")
	g.AddJoin([]string{"a", "b"}, "c")
	g.AddConditionalEdges("a", nowhere)
	g.AddConditionalEdges("a", nowhere, "b", superstep.End)
	g.AddConditionalEdges(superstep.Start, nowhere, "b")
	compiled, err := g.Compile(superstep.WithInput[in](), superstep.WithOutput[out](),
		superstep.WithInterruptBefore("a"), superstep.WithInterruptAfter(superstep.All))
	require.NoError(t, err)
	requireKnownFromHistory(t, compiled.Adapter())
	spec := compiled.Adapter().Spec
	sub := *small().Adapter().Spec
	sub.Memory = pregel.MemoryThread
	assert.Equal(t, &pregel.Spec{
		Version: pregel.SpecVersion,
		Name:    "g",
		Channels: []pregel.ChannelSpec{
			{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"},
			{Name: "n", Kind: pregel.KindLast},
			{Name: "extra", Kind: pregel.KindLast},
			{Name: "secret", Kind: pregel.KindLast},
		},
		Nodes: []pregel.NodeSpec{
			{Name: "a", Reads: []string{"log", "n"}, Defer: true, TaskQueue: "gpu", RunTimeout: 60_000, IdleTimeout: 1_000},
			{Name: "b", Reads: []string{"n", "secret"}},
			{Name: "c", Reads: []string{"log", "n"}, Subgraph: "c", Retried: true},
		},
		Edges: []pregel.Edge{{From: "__start__", To: "a"}},
		Joins: []pregel.Join{{From: []string{"a", "b"}, To: "c"}},
		Branches: []pregel.Branch{
			{From: "a", Ordinal: 0},
			{From: "a", Ordinal: 1, Targets: []string{"b", "__end__"}},
			{From: "__start__", Ordinal: 0, Targets: []string{"b"}},
		},
		Input:           []string{"n", "extra"},
		Output:          []string{"log"},
		InterruptBefore: []string{"a"},
		InterruptAfter:  []string{"*"},
		Subgraphs:       map[string]*pregel.Spec{"c": &sub},
	}, spec)
	assert.Empty(t, small().Adapter().Spec.Memory, "the subgraph itself stays as it is")
	nodes := compiled.Adapter().Nodes
	assert.Len(t, nodes["a"].Branches, 2)
	assert.Len(t, nodes[superstep.Start].Branches, 1)
	assert.Equal(t, time.Minute, nodes["a"].RunTimeout)
	assert.Equal(t, 5, nodes["a"].Retry[0].MaxAttempts)
	assert.Equal(t, "g", compiled.Name())
}

func small() *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter]("small")
	g.AddNode("only", pass)
	g.AddEdge(superstep.Start, "only")
	return g.MustCompile()
}
