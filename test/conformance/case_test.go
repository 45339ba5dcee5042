package main

import (
	"reflect"
	"strings"
	"testing"
)

// minimal is a case with a hole for what a test adds.
const minimal = `{"name": "n", "about": "", "tags": [],
 "graph": {"channels": {"b": {"kind": "last"}, "a": {"kind": "sum", "default": 5}},
  "nodes": [{"name": "x", "script": []}], "edges": [["__start__", "x"], [["x", "x2"], "y"]],
  "branches": [{"from": "x", "script": [], "paths": {"l": "y"}}, {"from": "x", "script": [], "paths": ["y"]}, {"from": "x", "script": []}],
  "compile": {"interrupt_before": "*", "interrupt_after": ["x"], "checkpointer": false}},
 "actions": [ACTIONS], "expect": [EXPECT]}`

func decodeMinimal(actions, expect string) (*caseDoc, error) {
	return decodeCase([]byte(strings.NewReplacer("ACTIONS", actions, "EXPECT", expect).Replace(minimal)))
}

func TestDecodeCase(t *testing.T) {
	c, err := decodeMinimal(`{"invoke": null}, {"resume": 0, "thread": "t"}`, `{}, {}`)
	if err != nil {
		t.Fatal(err)
	}
	g := c.Graph
	if g.Channels[0].Name != "b" || g.Channels[1].Name != "a" || string(g.Channels[1].Default) != "5" {
		t.Errorf("channels %v: want them in the order of the text", g.Channels)
	}
	if want := []edgeDoc{{from: []string{"__start__"}, to: "x"}, {from: []string{"x", "x2"}, join: true, to: "y"}}; !reflect.DeepEqual(g.Edges, want) {
		t.Errorf("edges %v, want %v", g.Edges, want)
	}
	if g.Branches[0].Paths.labels["l"] != "y" || g.Branches[1].Paths.targets[0] != "y" || g.Branches[2].Paths.targets != nil {
		t.Errorf("branches %+v", g.Branches)
	}
	if g.Compile.InterruptBefore[0] != "*" || g.Compile.InterruptAfter[0] != "x" || *g.Compile.Checkpointer {
		t.Errorf("compile %+v", g.Compile)
	}
	if g.Input != nil || g.Output != nil {
		t.Errorf("input %v, output %v: absent must stay nil, which means all channels", g.Input, g.Output)
	}
	if string(c.Actions[0].Invoke) != "null" || c.Actions[1].Invoke != nil {
		t.Errorf("an explicit null and an absent input must differ: %q, %q", c.Actions[0].Invoke, c.Actions[1].Invoke)
	}
	if c.Actions[0].thread() != "1" || c.Actions[1].thread() != "t" {
		t.Errorf("threads %q, %q", c.Actions[0].thread(), c.Actions[1].thread())
	}
	if !c.checkpointed() {
		t.Error("a case has a checkpointer unless it says no")
	}
}

func TestDecodeCaseRefuses(t *testing.T) {
	for _, c := range []struct{ actions, expect, want string }{
		{`{"invoke": {}, "tread": "x"}`, `{}`, "tread"},
		{`{"invoke": {}, "resume": 1}`, `{}`, "has 2 of them"},
		{`{"thread": "x"}`, `{}`, "has 0 of them"},
		{`{"invoke": {}}`, ``, "1 actions but 0 expected results"},
		{`{"invoke": {}, "durability": "never"}`, `{}`, "durability"},
		{`{"invoke": {}, "modes": ["debug"]}`, `{}`, "stream mode"},
		{`{"invoke": {}, "subgraph": ["x"]}`, `{}`, "subgraph"},
		{`{"invoke": {}, "interrupt_before": "x"}`, `{}`, "list of node names"},
		{`{"history": true, "recursion_limit": 3}`, `{}`, "only run actions"},
		{`{"history": true, "from_checkpoint": 0}`, `{}`, "from_checkpoint"},
		{`{"get_state": "all"}`, `{}`, "get_state"},
		{`{"command": {"resume": 1, "resume_map": {}}}`, `{}`, "not both"},
	} {
		if _, err := decodeMinimal(c.actions, c.expect); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.actions, err, c.want)
		}
	}
	for _, text := range []string{`{}`, `{"name": "n"}`, `{"name": "n", "graph": {}}`, `[]`} {
		if _, err := decodeCase([]byte(text)); err == nil {
			t.Errorf("decodeCase(%s) gave no error", text)
		}
	}
}

func TestCompileErrorCaseHasOneResult(t *testing.T) {
	c, err := decodeMinimal(`{"invoke": {}}, {"invoke": {}}`, `{"error": {"type": "CompileError"}}`)
	if err != nil || !c.expectsCompileError() {
		t.Errorf("%v, %v: a graph that cannot be built has one result for all actions", c, err)
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, c := range []struct{ graph, want string }{
		{`{"channels": {"a": {"kind": "set"}}}`, `no kind "set"`},
		{`{"channels": {"a": {"kind": "last", "default": 1}}}`, "no default"},
		{`{"nodes": [{"name": "x"}]}`, "script or a subgraph"},
		{`{"nodes": [{"name": "x", "script": [], "subgraph": "self"}]}`, "script or a subgraph"},
		{`{"nodes": [{"name": "x", "subgraph": "none"}]}`, `no graph "none"`},
		{`{"nodes": [{"name": "x", "subgraph": "self"}]}`, "contains itself"},
		{`{"nodes": [{"name": "x", "script": [{"op": "route", "to": []}]}]}`, `no operation "route"`},
		{`{"branches": [{"from": "x", "script": [{"op": "write", "channel": "a", "value": 1}]}]}`, `no operation "write"`},
		{`{"nodes": [{"name": "x", "script": [{"op": "let", "var": "v", "value": {"$sub": 1}}]}]}`, "no such operator"},
		{`{"nodes": [{"name": "x", "script": [{"op": "fail", "message": "m", "time": 1}]}]}`, "time"},
		{`{"nodes": [{"name": "x", "script": [{"op": "let", "var": "v"}]}]}`, "missing"},
	} {
		doc, err := decodeCase([]byte(`{"name": "n", "graph": ` + c.graph + `,
			"graphs": {"self": {"nodes": [{"name": "y", "subgraph": "self"}]}}, "actions": [{"invoke": {}}], "expect": [{}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := buildCase(doc, &counters{}, rootName); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.graph, err, c.want)
		}
	}
}
