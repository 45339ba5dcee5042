// Package casegen draws conformance cases: a random graph, and what people do with its thread. A case is a document as
// testdata/FORMAT.md describes it, without expected results.
//
// Properties of the engines are checked on drawn cases, and the recorder asks LangGraph what the answers to drawn cases
// are. Both draw by numbers, so a case can be drawn again from a seed, and a property test shrinks it by making the
// numbers smaller.
package casegen

import (
	"fmt"
	"slices"
)

// Doc is a JSON object of a case.
type Doc = map[string]any

// Draw returns a number from least to most, both included. The label says what the number is for.
type Draw func(least, most int, label string) int

// Options say which cases are drawn.
type Options struct {
	// Pure leaves out whatever makes a second run of a task differ from the first: questions, failures and what is never
	// stored.
	Pure bool
	// Wide adds what makes LangGraph's own rules meet: subgraphs that share their parent's channels, two of them deep and
	// retried as a whole, commands to the parent graph, messages, forks, updates of subgraphs, and more actions.
	Wide bool
	// Recorded makes cases whose answers can be recorded: a task that fails sleeps first, because LangGraph stops the
	// siblings of a failed task wherever they are.
	Recorded bool
}

// Case draws a case. Its tags name the constructs in it, and each of its expected results is empty.
//
// Everything a script does follows from its input, its answers and how often it ran, so every order in which a
// superstep's tasks run gives the same trace. That is why at most one node of a case fails, and why that node is no
// target of a send.
func Case(draw Draw, name string, o Options) Doc {
	g := &generator{Options: o, draw: draw, graphs: Doc{}}
	root := g.graph(nil, "", 0)
	c := Doc{"name": name, "graph": root.doc}
	if len(g.graphs) > 0 {
		c["graphs"] = g.graphs
	}
	actions := g.actions(root)
	expect := make([]Doc, len(actions))
	for i := range expect {
		expect[i] = Doc{}
	}
	c["actions"], c["expect"] = actions, expect
	c["tags"] = tagsOf(c)
	return c
}

// generator makes one case.
type generator struct {
	Options
	draw Draw
	// asks are the values of the questions that the case may ask.
	asks []string
	// failing says that a node of the case fails already.
	failing bool
	// forgets says that a subgraph keeps no state.
	forgets bool
	graphs  Doc
	// pending are the paths of the subgraph nodes, from the root.
	pending [][]string
}

// shape is what the scripts of a graph may use.
type shape struct {
	doc      Doc
	parent   *shape
	path     []string
	channels []channel
	nodes    []string
	worker   string // the node that sends go to, "" if there is none
	sent     bool   // the graph is run by such a node, or within one
}

type channel struct{ name, kind string }

func (g *generator) chance(percent int, label string) bool {
	return g.draw(0, 99, label) >= 100-percent
}

func pick[T any](g *generator, list []T, label string) T {
	return list[g.draw(0, len(list)-1, label)]
}

// shuffled is a permutation of a list. Drawing the least numbers leaves the order as it is.
func shuffled(g *generator, list []string, label string) []string {
	left, out := slices.Clone(list), []string{}
	for len(left) > 0 {
		i := g.draw(0, len(left)-1, label)
		out = append(out, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return out
}

// letters are the ends of the names of a graph's nodes; the rest is the name of the node that runs the graph, so every
// name of a case is used once.
var letters = []string{"a", "b", "c", "d", "e"}

// workerLetter ends the name of the node that sends go to.
const workerLetter = "w"

// deepest is how many subgraphs stand within each other.
const deepest = 2

// graph draws a graph; those that it runs inside its nodes go to g.graphs.
func (g *generator) graph(parent *shape, prefix string, depth int) *shape {
	s := &shape{doc: Doc{}, parent: parent}
	if parent != nil {
		s.sent = parent.sent || prefix == parent.worker
		s.path = append(slices.Clone(parent.path), prefix)
	}
	g.channels(s)
	for _, letter := range letters[:g.draw(1, len(letters)-1-depth/2, "nodes")] {
		s.nodes = append(s.nodes, prefix+letter)
	}
	if g.chance(30, "takes sends") {
		s.worker = prefix + workerLetter
	}
	declared := slices.Clone(s.nodes)
	if s.worker != "" {
		declared = append(declared, s.worker)
	}
	var nodes []Doc
	for _, name := range shuffled(g, declared, "declared") {
		nodes = append(nodes, g.node(s, name, depth))
	}
	s.doc["nodes"] = nodes
	g.edges(s)
	g.compiled(s)
	g.schemas(s)
	return s
}

// channelKinds are the kinds beside log and n, with the names of the channels.
var channelKinds = []channel{
	{"max", "max"}, {"str", "concat"}, {"obj", "merge"}, {"any", "any"}, {"top", "topic"}, {"acc", "topic_accumulate"},
	{"eph", "ephemeral_any"}, {"unt", "untracked_any"}, {"m", "messages"}, {"last", "last"},
}

func (g *generator) channels(s *shape) {
	s.channels = []channel{{"log", "append"}, {"n", "sum"}}
	all := Doc{"log": Doc{"kind": "append"}, "n": Doc{"kind": "sum"}}
	for _, c := range channelKinds {
		rare := c.kind == "last" || c.kind == "messages" && !g.Wide
		if c.kind == "untracked_any" && g.Pure || rare && !g.chance(40, "rare channel") || !g.chance(15, "channel") {
			continue
		}
		s.channels = append(s.channels, c)
		all[c.name] = Doc{"kind": c.kind}
	}
	s.doc["channels"] = all
}

// edges leads from the start through all nodes, mostly forward, and adds conditional edges that may lead back.
func (g *generator) edges(s *shape) {
	order := shuffled(g, s.nodes, "order")
	edges := [][]any{{"__start__", order[0]}}
	for i := 1; i < len(order); i++ {
		switch {
		case i > 1 && g.chance(15, "join"):
			edges = append(edges, []any{[]string{order[i-2], order[i-1]}, order[i]})
		case g.chance(20, "another entry"):
			edges = append(edges, []any{"__start__", order[i]})
		default:
			edges = append(edges, []any{order[g.draw(0, i-1, "from")], order[i]})
		}
		if g.chance(15, "another edge") {
			edges = append(edges, []any{order[g.draw(0, i-1, "from")], order[i]})
		}
	}
	if s.worker != "" && g.chance(30, "worker's edge") {
		edges = append(edges, []any{s.worker, pick(g, order, "to")})
	}
	if !g.Wide && g.chance(15, "any edge") {
		edges = append(edges, []any{pick(g, order, "from"), pick(g, append([]string{"__end__"}, order...), "to")})
	}
	s.doc["edges"] = distinct(edges)
	var branches []Doc
	for i, name := range order {
		for percent := 40; g.chance(percent, "branch"); percent = 15 {
			branches = append(branches, g.branch(s, name, order[i+1:]))
		}
	}
	if s.worker != "" && len(branches) == 0 {
		branches = append(branches, g.branch(s, pick(g, order, "from"), nil))
	}
	if len(branches) > 0 {
		s.doc["branches"] = branches
	}
}

// distinct drops repeated edges, which add nothing.
func distinct(edges [][]any) [][]any {
	seen, out := map[string]bool{}, [][]any{}
	for _, e := range edges {
		if key := fmt.Sprint(e...); !seen[key] {
			seen[key] = true
			out = append(out, e)
		}
	}
	return out
}

// compiled draws breakpoints, and for subgraphs how long they remember.
func (g *generator) compiled(s *shape) {
	options := Doc{}
	if !g.Pure && g.chance(10, "breakpoint") {
		var at any = "*"
		if !g.chance(20, "all") {
			at = []string{pick(g, s.nodes, "at")}
		}
		options[pick(g, []string{"interrupt_before", "interrupt_after"}, "where")] = at
	}
	if s.parent != nil && g.chance(35, "own memory") {
		keeps := g.chance(80, "keeps")
		options["checkpointer"] = keeps
		g.forgets = g.forgets || !keeps
	}
	if len(options) > 0 {
		s.doc["compile"] = options
	}
}

// bounded are the kinds of channels that a subgraph can be given in a loop. Those that grow by what they are given are
// not among them: a state that doubles with every round would fill the machine. A recording of such a case is given up
// when it gets large, so wide cases have them.
var bounded = []string{"max", "merge", "any", "last"}

// schemas draws what a subgraph takes and shows.
func (g *generator) schemas(s *shape) {
	switch {
	case s.parent == nil:
	case !g.Wide:
		input := []string{}
		for _, c := range s.channels {
			if slices.Contains(bounded, c.kind) {
				input = append(input, c.name)
			}
		}
		s.doc["input"] = input
	default:
		if g.chance(12, "input") {
			s.doc["input"] = []string{"log"}
		}
		if g.chance(40, "output") {
			s.doc["output"] = []string{"log"}
		}
	}
}
