package graph_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

func nodes(names ...string) (out []pregel.NodeSpec) {
	for _, n := range names {
		out = append(out, pregel.NodeSpec{Name: n})
	}
	return out
}

func edges(pairs ...string) (out []pregel.Edge) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, pregel.Edge{From: pairs[i], To: pairs[i+1]})
	}
	return out
}

func TestDrawText(t *testing.T) {
	tests := map[string]struct {
		spec *pregel.Spec
		want string
	}{
		"a chain": {
			&pregel.Spec{Nodes: nodes("a", "b"), Edges: edges("__start__", "a", "a", "b", "b", "__end__")},
			"START → a → b → END\n",
		},
		"the refund": {
			&pregel.Spec{
				Nodes: nodes("read_order", "calculate", "approval", "commit_refund", "notify"),
				Edges: edges("__start__", "read_order", "read_order", "calculate", "approval", "commit_refund",
					"commit_refund", "notify", "notify", "__end__"),
				Branches: []pregel.Branch{{From: "calculate", Targets: []string{"approval", "commit_refund"}}},
			},
			"START → read_order → calculate ─┬─⇢ approval → commit_refund\n" +
				"                                └─⇢ commit_refund\n" +
				"commit_refund → notify → END\n",
		},
		"a loop": {
			&pregel.Spec{
				Nodes:    nodes("model", "tools"),
				Edges:    edges("__start__", "model", "tools", "model"),
				Branches: []pregel.Branch{{From: "model", Targets: []string{"tools", "__end__"}}},
			},
			"START → model\n" +
				"model ─┬─⇢ tools → model\n" +
				"       └─⇢ END\n",
		},
		"a diamond with a join": {
			&pregel.Spec{
				Nodes: nodes("a", "b", "c", "d"),
				Edges: edges("__start__", "a", "a", "b", "a", "c", "d", "__end__"),
				Joins: []pregel.Join{{From: []string{"b", "c"}, To: "d"}},
			},
			"START → a ─┬─→ b\n" +
				"           └─→ c\n" +
				"b + c → d → END\n",
		},
		"three ways and one of them on": {
			&pregel.Spec{
				Nodes:    nodes("a", "b", "c"),
				Edges:    edges("__start__", "a", "b", "c", "b", "__end__"),
				Branches: []pregel.Branch{{From: "a", Targets: []string{"b", "c", "__end__"}}},
			},
			"START → a ─┬─⇢ b\n" +
				"           ├─⇢ c\n" +
				"           └─⇢ END\n" +
				"b ─┬─→ c\n" +
				"   └─→ END\n",
		},
		"any target, and nodes that commands reach": {
			&pregel.Spec{
				Nodes:    nodes("a", "lonely", "x", "y"),
				Edges:    edges("__start__", "a", "x", "y"),
				Branches: []pregel.Branch{{From: "a"}},
			},
			"START → a ⇢ any\nlonely\nx → y\n",
		},
		"labels": {
			&pregel.Spec{
				Nodes:    nodes("a", "b"),
				Edges:    edges("__start__", "a"),
				Branches: []pregel.Branch{{From: "a", Labels: map[string]string{"no": "__end__", "yes": "b"}}},
			},
			"START → a ─┬─⇢ END\n           └─⇢ b\n",
		},
		"a subgraph": {
			&pregel.Spec{
				Nodes:     []pregel.NodeSpec{{Name: "outer", Subgraph: "s"}},
				Edges:     edges("__start__", "outer"),
				Subgraphs: map[string]*pregel.Spec{"s": {Name: "inner", Nodes: nodes("i"), Edges: edges("__start__", "i")}},
			},
			"START → outer\nouter runs inner:\n  START → i\n",
		},
		"error handlers and breakpoints": {
			&pregel.Spec{
				Nodes: []pregel.NodeSpec{
					{Name: "__error_handler__pay", Handler: true}, {Name: "pay", ErrorHandler: "__error_handler__pay"},
					{Name: "__default_error_handler__", Handler: true},
					{Name: "mail", ErrorHandler: "__default_error_handler__"},
					{Name: "log", ErrorHandler: "__default_error_handler__"},
				},
				Edges:           edges("__start__", "pay", "pay", "mail", "mail", "log"),
				InterruptBefore: []string{"mail", "pay"}, InterruptAfter: []string{"*"},
			},
			"START → pay → mail → log\n" +
				"on error of pay: __error_handler__pay\n" +
				"on error of mail, log: __default_error_handler__\n" +
				"stops before pay, mail\n" +
				"stops after pay, mail, log\n",
		},
		"a node that leads to itself": {
			&pregel.Spec{Nodes: nodes("a"), Edges: edges("__start__", "a", "a", "a")},
			"START → a\na → a\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := superstep.Draw(test.spec, superstep.DrawText)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func drawn(t *testing.T, format string) string {
	t.Helper()
	got, err := superstep.Draw(&pregel.Spec{
		Name: `g "1"`,
		Nodes: []pregel.NodeSpec{{Name: "h", Handler: true}, {Name: "a", ErrorHandler: "h"}, {Name: `b"`, Defer: true},
			{Name: "c", Subgraph: "s"}},
		InterruptBefore: []string{`b"`}, InterruptAfter: []string{"c"},
		Edges:     edges("__start__", "a", "c", "__end__"),
		Joins:     []pregel.Join{{From: []string{"a", `b"`}, To: "c"}},
		Branches:  []pregel.Branch{{From: "a", Targets: []string{`b"`}}, {From: `b"`}},
		Subgraphs: map[string]*pregel.Spec{"s": {Name: "sub", Edges: edges("__start__", "__end__")}},
	}, format)
	require.NoError(t, err)
	return got
}

func TestDrawMermaid(t *testing.T) {
	assert.Equal(t, `flowchart TD
  n1(["START"])
  n2["h"]
  n3["a"]
  n4["b#quot; (deferred, stops before)"]
  n5["c (stops after)"]
  subgraph n6 ["c: sub"]
    n7(["START"])
    n8(["END"])
    n7 --> n8
  end
  n9(["END"])
  n1 --> n3
  n3 -.-> n4
  n10(["any"])
  n4 -.-> n10
  n5 --> n9
  n3 -. on error .-> n2
  n11(["all of"])
  n3 --> n11
  n4 --> n11
  n11 --> n5
`, drawn(t, superstep.DrawMermaid))
}

func TestDrawDOT(t *testing.T) {
	assert.Equal(t, `digraph "g \"1\"" {
  n1 [label="START" shape=oval];
  n2 [label="h" shape=box];
  n3 [label="a" shape=box];
  n4 [label="b\" (deferred, stops before)" shape=box];
  n5 [label="c (stops after)" shape=box];
  subgraph cluster_n6 { label="c: sub";
    n7 [label="START" shape=oval];
    n8 [label="END" shape=oval];
    n7 -> n8;
  }
  n9 [label="END" shape=oval];
  n1 -> n3;
  n3 -> n4 [style=dashed];
  n10 [label="any" shape=oval];
  n4 -> n10 [style=dashed];
  n5 -> n9;
  n3 -> n2 [style=dotted label="on error"];
  n11 [label="all of" shape=oval];
  n3 -> n11;
  n4 -> n11;
  n11 -> n5;
}
`, drawn(t, superstep.DrawDOT))
}

func TestDrawRefusesUnknownFormats(t *testing.T) {
	_, err := superstep.Draw(&pregel.Spec{}, "svg")
	assert.ErrorIs(t, err, thread.ErrBadInput)
	assert.ErrorContains(t, err, `unknown format "svg": there are text, mermaid and dot`)
}
