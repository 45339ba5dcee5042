package graph_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"

	"superstep.dev"
)

func pass(_ context.Context, s rig.Counter) (rig.Counter, error) { return s, nil }

func nowhere(context.Context, rig.Counter) ([]superstep.Target, error) { return nil, nil }

// here is the place of the line that calls it, as compile errors name places.
func here() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(file)), filepath.Base(file), line)
}

// problems are the compile errors of a graph.
func problems(t *testing.T, err error) []*superstep.CompileError {
	t.Helper()
	require.Error(t, err)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "all errors are joined")
	var out []*superstep.CompileError
	for _, e := range joined.Unwrap() {
		var one *superstep.CompileError
		require.ErrorAs(t, e, &one)
		out = append(out, one)
	}
	return out
}

func TestCompileReportsEveryMistakeWithItsPlace(t *testing.T) {
	type graph = *superstep.StateGraph[rig.Counter]
	tests := map[string]struct {
		build   func(g graph) (call string)
		options []superstep.CompileOption
		node    string
		want    string
	}{
		"duplicate node": {
			build: func(g graph) string { g.AddNode("a", pass); return here() },
			node:  "a", want: "it is already added at",
		},
		"reserved node name": {
			build: func(g graph) string { g.AddNode(superstep.Start, pass); return here() },
			node:  "__start__", want: `the name "__start__" is reserved`,
		},
		"the name of every node": {
			build: func(g graph) string { g.AddNode("*", pass); return here() },
			node:  "*", want: `the name "*" is reserved`,
		},
		"empty node name": {
			build: func(g graph) string { g.AddNode("", pass); return here() },
			want:  "a name must not be empty",
		},
		"long node name": {
			build: func(g graph) string { g.AddNode(strings.Repeat("x", 101), pass); return here() },
			node:  strings.Repeat("x", 101), want: "at most 100 bytes",
		},
		"dot in a name": {
			build: func(g graph) string { g.AddNode("a.b", pass); return here() },
			node:  "a.b", want: `contains '.'`,
		},
		"bar in a name": {
			build: func(g graph) string { g.AddNode("a|b", pass); return here() },
			node:  "a|b", want: `contains '|'`,
		},
		"colon in a name": {
			build: func(g graph) string { g.AddNode("a:b", pass); return here() },
			node:  "a:b", want: `contains ':'`,
		},
		"exclamation mark in a name": {
			build: func(g graph) string { g.AddNode("a!b", pass); return here() },
			node:  "a!b", want: `contains '!'`,
		},
		"slash in a name": {
			build: func(g graph) string { g.AddNode("a/b", pass); return here() },
			node:  "a/b", want: `contains '/'`,
		},
		"nil function": {
			build: func(g graph) string { g.AddNode("nil", nil); return here() },
			node:  "nil", want: "its function is nil",
		},
		"nil subgraph": {
			build: func(g graph) string { g.AddSubgraph("nil", (*superstep.Graph[rig.Counter])(nil)); return here() },
			node:  "nil", want: "its subgraph is nil",
		},
		"memory of a function": {
			build: func(g graph) string {
				g.AddNode("m", pass, superstep.WithSubgraphMemory(superstep.SubgraphMemoryThread))
				return before(here())
			},
			node: "m", want: "WithSubgraphMemory is for subgraphs",
		},
		"timeout of a subgraph": {
			build: func(g graph) string {
				g.AddSubgraph("sub", small(), superstep.WithTimeout(time.Second, 0))
				return before(here())
			},
			node: "sub", want: "WithTimeout and WithTaskQueue are for functions",
		},
		"negative timeout": {
			build: func(g graph) string { g.AddNode("t", pass, superstep.WithTimeout(-1, 0)); return here() },
			node:  "t", want: "a timeout must not be negative",
		},
		"negative attempts": {
			build: func(g graph) string {
				g.AddNode("r", pass, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: -1}))
				return before(here())
			},
			node: "r", want: "must not be negative",
		},
		"edge from nowhere": {
			build: func(g graph) string { g.AddEdge("aprove", "a"); return here() },
			want:  `the edge from "aprove" to "a": there is no node "aprove": did you mean "approve"?`,
		},
		"edge to nowhere": {
			build: func(g graph) string { g.AddEdge("a", "zzzzzzzzzz"); return here() },
			want:  `the edge from "a" to "zzzzzzzzzz": there is no node "zzzzzzzzzz": there is "a", "approve"`,
		},
		"edge from the end": {
			build: func(g graph) string { g.AddEdge(superstep.End, "a"); return here() },
			want:  "nothing can follow the end of the graph",
		},
		"edge to the start": {
			build: func(g graph) string { g.AddEdge("a", superstep.Start); return here() },
			want:  "the start of the graph cannot be a target",
		},
		"join of nothing": {
			build: func(g graph) string { g.AddJoin(nil, "a"); return here() },
			want:  `the join to "a" has no sources`,
		},
		"join from nowhere": {
			build: func(g graph) string { g.AddJoin([]string{"a", "b"}, "approve"); return here() },
			want:  `the join to "approve": there is no node "b"`,
		},
		"join that names a source twice": {
			build: func(g graph) string { g.AddJoin([]string{"a", "a"}, "approve"); return here() },
			want:  `the join to "approve" names its source "a" twice`,
		},
		"join from the start": {
			build: func(g graph) string { g.AddJoin([]string{superstep.Start, "a"}, "approve"); return here() },
			want:  "the start of the graph cannot be one of a join's sources",
		},
		"join to nowhere": {
			build: func(g graph) string { g.AddJoin([]string{"a"}, "b"); return here() },
			want:  `the join to "b": there is no node "b"`,
		},
		"branch from nowhere": {
			build: func(g graph) string { g.AddConditionalEdges("b", nowhere); return here() },
			want:  `the conditional edge from "b": there is no node "b"`,
		},
		"branch from the end": {
			build: func(g graph) string { g.AddConditionalEdges(superstep.End, nowhere); return here() },
			want:  "nothing can follow the end of the graph",
		},
		"branch to nowhere": {
			build: func(g graph) string { g.AddConditionalEdges("a", nowhere, "b"); return here() },
			want:  `the conditional edge from "a": there is no node "b"`,
		},
		"branch to the start": {
			build: func(g graph) string { g.AddConditionalEdges("a", nowhere, superstep.Start); return here() },
			want:  "the start of the graph cannot be a target",
		},
		"branch without a function": {
			build: func(g graph) string { g.AddConditionalEdges("a", nil, "a"); return here() },
			want:  `the conditional edge from "a" has no routing function`,
		},
		"breakpoint nowhere": {
			build:   func(graph) string { return "" },
			options: []superstep.CompileOption{superstep.WithInterruptBefore("aprove")},
			want:    `the breakpoint at "aprove": there is no such node: did you mean "approve"?`,
		},
		"breakpoint after nowhere": {
			build:   func(graph) string { return "" },
			options: []superstep.CompileOption{superstep.WithInterruptAfter(superstep.All, "x")},
			want:    `the breakpoint at "x"`,
		},
		"plain input": {
			build:   func(graph) string { return "" },
			options: []superstep.CompileOption{superstep.WithInput[struct{ Order string }]()},
			want:    "Order is a plain string: declare it as superstep.Value[string]",
		},
		"output of another type": {
			build: func(graph) string { return "" },
			options: []superstep.CompileOption{superstep.WithOutput[struct {
				N superstep.Value[string] `json:"n"`
			}]()},
			want: `share the channel "n", but one holds int64 and the other string`,
		},
		"input with another rule": {
			build: func(graph) string { return "" },
			options: []superstep.CompileOption{superstep.WithInput[struct {
				Log superstep.Topic[string] `json:"log"`
			}]()},
			want: `share the channel "log" with different update rules (append/v1 and topic): declare the second as superstep.Value`,
		},
		"edge to a node for Sends": {
			build: func(g graph) string {
				superstep.AddInputNode(g, "each", func(context.Context, int) (superstep.Command[rig.Counter], error) {
					return superstep.Command[rig.Counter]{}, nil
				})
				g.AddEdge("a", "each")
				return before(here())
			},
			node: "each", want: "an edge leads to it, but its input is a Send's argument",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := superstep.NewStateGraph[rig.Counter]("g")
			g.AddNode("a", pass)
			g.AddNode("approve", pass)
			g.AddEdge(superstep.Start, "a")
			call := test.build(g)
			_, err := g.Compile(test.options...)
			if compile := before(here()); call == "" {
				call = compile
			}
			got := problems(t, err)
			require.Len(t, got, 1, "%v", err)
			assert.Contains(t, got[0].Message, test.want)
			assert.Equal(t, call, got[0].Call)
			assert.Equal(t, test.node, got[0].Node)
			assert.Equal(t, "g", got[0].Graph)
			assert.Contains(t, got[0].Error(), "("+call+")")
			assert.NotContains(t, got[0].Error(), "\n")
		})
	}
}

// before is the place one line before another.
func before(place string) string { return shift(place, -1) }

func shift(place string, by int) string {
	at := strings.LastIndexByte(place, ':')
	var line int
	_, _ = fmt.Sscanf(place[at+1:], "%d", &line)
	return fmt.Sprintf("%s:%d", place[:at], line+by)
}

func TestCompileJoinsAllErrors(t *testing.T) {
	type state struct {
		Amount int64
		Log    superstep.List[string]
	}
	g := superstep.NewStateGraph[state]("a.b")
	call := before(here())
	g.AddEdge("x", "y")
	edge := before(here())
	_, err := g.Compile()
	compile := before(here())
	got := problems(t, err)
	require.Len(t, got, 5)
	assert.Equal(t, []string{call, call, edge, edge, compile}, []string{got[0].Call, got[1].Call, got[2].Call, got[3].Call, got[4].Call})
	assert.Contains(t, got[0].Message, `contains '.'`)
	assert.Contains(t, got[1].Message, "graph_test.state.Amount is a plain int64: declare it as superstep.Value[int64]")
	assert.Contains(t, got[4].Message, "it has no entry")
	assert.PanicsWithError(t, strings.ReplaceAll(err.Error(), compile, shift(here(), 0)), func() { g.MustCompile() })
}

type lastWord struct{}

func (lastWord) Name() string { return "words/v1" }

func (lastWord) Reduce(_, update string) (string, error) { return update, nil }

type firstWord struct{}

func (firstWord) Name() string { return "words/v1" }

func (firstWord) Reduce(current, _ string) (string, error) { return current, nil }

func TestOneReducerNameIsOneReducer(t *testing.T) {
	type inner struct {
		Word superstep.Reduced[string, lastWord] `json:"word"`
	}
	type outer struct {
		Word superstep.Reduced[string, firstWord] `json:"word"`
	}
	sub := superstep.NewStateGraph[inner]("sub")
	sub.AddEdge(superstep.Start, superstep.End)
	g := superstep.NewStateGraph[outer]("g")
	g.AddSubgraph("sub", sub.MustCompile())
	call := before(here())
	g.AddEdge(superstep.Start, "sub")
	_, err := g.Compile()
	got := problems(t, err)
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Message, `the reducer name "words/v1" for graph_test.lastWord, which is already that of graph_test.firstWord`)
	assert.Equal(t, call, got[0].Call)

	type both struct {
		A superstep.Reduced[string, firstWord] `json:"a"`
		B superstep.Reduced[string, lastWord]  `json:"b"`
	}
	_, err = superstep.NewStateGraph[both]("g").Compile()
	assert.ErrorContains(t, err, "which is already that of")
}

func TestEffectsAreRegistered(t *testing.T) {
	refund := &superstep.Effect[int, string]{Name: "pay.refund", Target: superstep.TargetKeyed,
		Do: func(context.Context, string, int) (string, error) { return "ok", nil }}
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddEdge(superstep.Start, superstep.End)
	g.AddEffect(refund)
	first := before(here())
	compiled, err := g.Compile()
	require.NoError(t, err)
	assert.Contains(t, compiled.Adapter().Effects, "pay.refund")

	g.AddEffect(refund, nil, &superstep.Effect[int, string]{Name: "x"})
	call := before(here())
	_, err = g.Compile()
	got := problems(t, err)
	require.Len(t, got, 3)
	assert.Contains(t, got[0].Message, `the effect "pay.refund" is already added at `+first)
	assert.Contains(t, got[1].Message, "the effect is nil")
	assert.Contains(t, got[2].Message, "has no Do")
	for _, p := range got {
		assert.Equal(t, call, p.Call)
	}
}

func TestCompileErrorsAreFoundByErrorsAs(t *testing.T) {
	_, err := superstep.NewStateGraph[rig.Counter]("").Compile()
	var one *superstep.CompileError
	require.True(t, errors.As(err, &one))
	assert.Contains(t, one.Error(), `graph "": a name must not be empty`)
}
