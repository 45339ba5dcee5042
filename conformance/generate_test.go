package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// A generated case is a document like a recorded one, without expected results: engines are held to each other. It
// shrinks as rapid's draws do, and what a failing test prints can be run by the command.
//
// Everything a script does follows from its input, its answers and how often it ran, so every order in which a
// superstep's tasks run gives the same trace. That is why at most one node of a case fails for good, and why it is no
// target of a send.

// doc is a JSON object being made.
type doc = map[string]any

// generator makes one case.
type generator struct {
	t *rapid.T
	// pure leaves out all that makes a second run of a task differ from the first: questions, failures and what is
	// never stored.
	pure bool
	// asks are the questions of the case, failing whether a node fails already.
	asks    []string
	failing bool
	graphs  doc
}

// graphShape is what the scripts of a graph may use.
type graphShape struct {
	prefix   string
	channels []channelShape
	nodes    []string
	sends    []string // nodes that sends may go to
	root     bool
}

type channelShape struct{ name, kind string }

// caseOf draws a case. Its name is the same for all: engines get a name of their own for the graph.
func caseOf(pure bool) *rapid.Generator[*source] {
	return rapid.Custom(func(t *rapid.T) *source {
		g := &generator{t: t, pure: pure, graphs: doc{}}
		root := g.graph("", 0)
		c := doc{"name": "generated", "graph": root}
		if len(g.graphs) > 0 {
			c["graphs"] = g.graphs
		}
		actions := g.actions(root)
		expect := make([]doc, len(actions))
		for i := range expect {
			expect[i] = doc{}
		}
		c["actions"], c["expect"] = actions, expect
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		s := newSource("generated", text)
		if s.err != nil {
			t.Fatalf("the generator made no case: %v\n%s", s.err, text)
		}
		return &s
	})
}

func (g *generator) chance(percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(g.t, label) >= 100-percent
}

func (g *generator) count(least, most int, label string) int {
	return rapid.IntRange(least, most).Draw(g.t, label)
}

func pick[T any](g *generator, list []T, label string) T {
	return rapid.SampledFrom(list).Draw(g.t, label)
}

// channelKinds are drawn for channels beside log and n, which are always there. A channel is named after its kind, so that
// a value of one graph fits the channel of that name in another.
var channelKinds = []string{"max", "concat", "merge", "any", "topic", "topic_accumulate", "ephemeral_any", "untracked_any", "last"}

// childInput are the channels that a subgraph takes from its node. Those that grow by what they are given are not among
// them: a state that doubles with every round would fill the machine.
var childInput = []string{"max", "merge", "any", "last"}

// graph draws a graph; those that it runs inside its nodes go to g.graphs.
func (g *generator) graph(prefix string, depth int) doc {
	s := &graphShape{prefix: prefix, root: prefix == "", channels: []channelShape{{"log", "append"}, {"n", "sum"}}}
	channels := `{"log": {"kind": "append"}, "n": {"kind": "sum"}`
	kinds := rapid.SliceOfNDistinct(rapid.SampledFrom(channelKinds), 0, 3, rapid.ID[string]).Draw(g.t, "channels")
	for _, kind := range kinds {
		if g.pure && kind == "untracked_any" {
			continue
		}
		s.channels = append(s.channels, channelShape{kind, kind})
		channels += fmt.Sprintf(`, %q: {"kind": %q}`, kind, kind)
	}
	names := []string{"a", "b", "c", "d", "e"}[:g.count(1, 5, "nodes")]
	s.nodes = rapid.Permutation(names).Draw(g.t, "declared")
	targets := append(slices.Clone(s.nodes), "__end__")
	for _, n := range s.nodes {
		if g.chance(40, "takes sends") {
			s.sends = append(s.sends, n)
		}
	}
	out := doc{"channels": json.RawMessage(channels + "}")}
	edges := [][]any{{"__start__", pick(g, s.nodes, "entry")}}
	if g.chance(40, "second entry") {
		if second := pick(g, s.nodes, "entry"); second != edges[0][1] {
			edges = append(edges, []any{"__start__", second})
		}
	}
	var nodes, branches []doc
	for _, n := range s.nodes {
		nodes = append(nodes, g.node(s, n, depth))
		switch g.count(0, 3, "leads to") {
		case 0, 1:
			edges = append(edges, []any{n, pick(g, targets, "edge")})
		case 2:
			branches = append(branches, g.branch(s, n))
		}
	}
	for range g.count(0, 1, "joins") {
		from := slices.Clone(rapid.SliceOfNDistinct(rapid.SampledFrom(s.nodes), 1, min(2, len(s.nodes)), rapid.ID[string]).Draw(g.t, "join"))
		edges = append(edges, []any{from, pick(g, s.nodes, "joined")})
	}
	out["nodes"], out["edges"] = nodes, edges
	if len(branches) > 0 {
		out["branches"] = branches
	}
	g.compiled(s, out)
	if !s.root {
		out["input"] = slices.DeleteFunc(kinds, func(kind string) bool { return !slices.Contains(childInput, kind) })
	}
	return out
}

// compiled draws breakpoints, and for subgraphs how long they remember.
func (g *generator) compiled(s *graphShape, out doc) {
	options := doc{}
	if !g.pure && g.chance(12, "breakpoint") {
		options[pick(g, []string{"interrupt_before", "interrupt_after"}, "where")] = []string{pick(g, s.nodes, "at")}
	}
	if !s.root && g.chance(25, "own memory") {
		options["checkpointer"] = g.chance(60, "keeps")
	}
	if len(options) > 0 {
		out["compile"] = options
	}
}

// node draws a node: a script, or a subgraph.
func (g *generator) node(s *graphShape, name string, depth int) doc {
	n := doc{"name": name}
	if g.chance(10, "defer") {
		n["defer"] = true
	}
	if depth < 2 && g.chance(20, "subgraph") {
		child := fmt.Sprintf("g%d", len(g.graphs))
		g.graphs[child] = nil // taken
		g.graphs[child] = g.graph(child+".", depth+1)
		n["subgraph"] = child
		return n
	}
	n["script"] = g.script(s, name, n)
	return n
}

// script draws what a node does. A retry policy goes into the node n.
func (g *generator) script(s *graphShape, name string, n doc) []doc {
	id := s.prefix + name
	ops := []doc{}
	var said any = id
	if g.chance(20, "custom") {
		ops = append(ops, doc{"op": "custom", "value": id})
	}
	if !g.pure && g.chance(15, "asks") {
		ops = append(ops, doc{"op": "interrupt", "value": "q " + id, "into": "v"})
		g.asks = append(g.asks, "q "+id)
		said = doc{"$cat": []any{id, " ", doc{"$var": "v"}}}
	}
	if !g.pure && !g.failing && !slices.Contains(s.sends, name) && g.chance(10, "fails") {
		g.failing = true
		times := g.count(1, 2, "times")
		ops = append(ops, doc{"op": "fail", "message": "no " + id, "times": times})
		if g.chance(60, "retry") {
			n["retry"] = doc{"max_attempts": g.count(1, 3, "attempts")}
		}
	}
	if !g.chance(10, "silent") {
		ops = append(ops, doc{"op": "write", "channel": "log", "value": doc{"$list": []any{said}}})
	}
	for _, c := range s.channels[1:] {
		if g.chance(30, "writes") {
			ops = append(ops, doc{"op": "write", "channel": c.name, "value": g.value(c, id)})
		}
	}
	if g.chance(12, "goto") {
		ops = append(ops, doc{"op": "if", "cond": doc{"$lt": []any{doc{"$get": "n"}, g.count(1, 4, "below")}},
			"then": []doc{g.jump(s)}})
	}
	return ops
}

// jump draws a goto, in a subgraph sometimes one of the parent graph.
func (g *generator) jump(s *graphShape) doc {
	return doc{"op": "goto", "to": g.targets(s)}
}

// targets draws the targets of a goto or a branch.
func (g *generator) targets(s *graphShape) []any {
	if len(s.sends) > 0 && g.chance(50, "send") {
		to := pick(g, s.sends, "send to")
		if g.chance(50, "each") {
			return []any{doc{"send": to, "each": []int{1, 2, 3}[:g.count(1, 3, "sends")], "arg": doc{"$item": true}}}
		}
		return []any{doc{"send": to, "arg": doc{"$obj": doc{"n": g.count(0, 3, "arg")}}}}
	}
	return []any{pick(g, append(slices.Clone(s.nodes), "__end__"), "target")}
}

// branch draws a conditional edge that loops for some rounds.
func (g *generator) branch(s *graphShape, from string) doc {
	return doc{"from": from, "script": []doc{{
		"op": "if", "cond": doc{"$lt": []any{doc{"$len": doc{"$get": "log"}}, g.count(1, 6, "rounds")}},
		"then": []doc{{"op": "route", "to": g.targets(s)}},
		"else": []doc{{"op": "route", "to": []any{pick(g, append(slices.Clone(s.nodes), "__end__"), "leaves to")}}},
	}}}
}

// value draws what is written to a channel, of the type that its reducer takes.
func (g *generator) value(c channelShape, id string) any {
	number := doc{"$add": []any{doc{"$get": "n"}, g.count(0, 3, "number")}}
	var v any
	switch c.kind {
	case "append":
		v = doc{"$list": []any{id}}
	case "concat":
		v = id
	case "merge":
		v = doc{"$obj": doc{id: number}}
	default:
		v = number
	}
	overwritable := c.kind == "sum" || c.kind == "max" || c.kind == "merge" || c.kind == "concat"
	if overwritable && g.chance(5, "overwrite") {
		return doc{"$obj": doc{overwriteKey: v}}
	}
	return v
}
