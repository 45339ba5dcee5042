package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

// builder turns the GRAPHs of one case into graphs of the engine. Each GRAPH is built once, however many nodes run it:
// its fail operations count together.
type builder struct {
	doc      *caseDoc
	counters *counters
	built    map[string]*built
	calls    sync.Mutex
	open     []string // the graphs being built, to refuse one that contains itself
}

// built is a graph with what the recorder needs to know of it.
type built struct {
	graph *graphadapter.Graph
	// kinds are the kinds of the channels.
	kinds map[string]pregel.Kind
	// nodes are the graphs that run inside the nodes.
	nodes map[string]*built
}

// rootName is the root graph's name in the Spec where nothing else shares its runtime; the graphs of a case use their own.
const rootName = "root"

// buildCase builds the root graph of a case under that name. The error is the case's fault; what only the engine can find wrong with
// the graph is found by pregel.Compile.
func buildCase(doc *caseDoc, c *counters, name string) (*built, error) {
	b := &builder{doc: doc, counters: c, built: map[string]*built{}}
	return b.graph(name, "", doc.Graph)
}

// called returns a graph that a script calls. Scripts run in parallel.
func (b *builder) called(name string) (*graphadapter.Graph, error) {
	b.calls.Lock()
	defer b.calls.Unlock()
	g, err := b.child(name)
	if err != nil {
		return nil, err
	}
	return g.graph, nil
}

// child builds a graph of the case's graphs.
func (b *builder) child(name string) (*built, error) {
	if g, ok := b.built[name]; ok {
		return g, nil
	}
	doc, ok := b.doc.Graphs[name]
	if !ok || doc == nil {
		return nil, fmt.Errorf("there is no graph %q in graphs", name)
	}
	if slices.Contains(b.open, name) {
		return nil, fmt.Errorf("the graph %q contains itself", name)
	}
	b.open = append(b.open, name)
	g, err := b.graph(name, name+".", doc)
	b.open = b.open[:len(b.open)-1]
	if err != nil {
		return nil, fmt.Errorf("graph %q: %w", name, err)
	}
	b.built[name] = g
	return g, nil
}

// graph builds one GRAPH; prefix is what its scripts are counted under.
func (b *builder) graph(name, prefix string, doc *graphDoc) (*built, error) {
	g := &built{
		graph: &graphadapter.Graph{
			Spec:  &pregel.Spec{Version: pregel.SpecVersion, Name: name, Input: doc.Input, Output: doc.Output},
			Nodes: map[string]graphadapter.Node{},
		},
		kinds: map[string]pregel.Kind{}, nodes: map[string]*built{},
	}
	spec := g.graph.Spec
	if err := g.addChannels(doc); err != nil {
		return nil, err
	}
	for i := range doc.Nodes {
		if err := b.addNode(g, prefix, &doc.Nodes[i]); err != nil {
			return nil, fmt.Errorf("node %q: %w", doc.Nodes[i].Name, err)
		}
	}
	for _, e := range doc.Edges {
		if e.join {
			spec.Joins = append(spec.Joins, pregel.Join{From: e.from, To: e.to})
			continue
		}
		spec.Edges = append(spec.Edges, pregel.Edge{From: e.from[0], To: e.to})
	}
	for i := range doc.Branches {
		if err := b.addBranch(g, prefix, &doc.Branches[i]); err != nil {
			return nil, fmt.Errorf("branch %d of %q: %w", i, doc.Branches[i].From, err)
		}
	}
	spec.InterruptBefore, spec.InterruptAfter = doc.Compile.InterruptBefore, doc.Compile.InterruptAfter
	if c := doc.Compile.Checkpointer; c != nil {
		spec.Memory = map[bool]pregel.Memory{true: pregel.MemoryThread, false: pregel.MemoryNone}[*c]
	}
	return g, nil
}

// channelRules maps the format's channel kinds to the engine's.
var channelRules = map[string]pregel.ChannelSpec{
	"last":             {Kind: pregel.KindLast},
	"any":              {Kind: pregel.KindAny},
	"ephemeral":        {Kind: pregel.KindEphemeral},
	"ephemeral_any":    {Kind: pregel.KindEphemeral, Unguarded: true},
	"untracked":        {Kind: pregel.KindUntracked},
	"untracked_any":    {Kind: pregel.KindUntracked, Unguarded: true},
	"topic":            {Kind: pregel.KindTopic},
	"topic_accumulate": {Kind: pregel.KindTopic, Accumulate: true},
	"sum":              {Kind: pregel.KindReduce, Reducer: "sum/v1"},
	"max":              {Kind: pregel.KindReduce, Reducer: "max/v1"},
	"append":           {Kind: pregel.KindReduce, Reducer: "append/v1"},
	"concat":           {Kind: pregel.KindReduce, Reducer: "concat/v1"},
	"merge":            {Kind: pregel.KindReduce, Reducer: "merge/v1"},
	"messages":         {Kind: pregel.KindReduce, Reducer: "messages/v1"},
}

func (g *built) addChannels(doc *graphDoc) error {
	for _, c := range doc.Channels {
		spec, ok := channelRules[c.Kind]
		if !ok {
			return fmt.Errorf("channel %q: there is no kind %q", c.Name, c.Kind)
		}
		if c.Default != nil && spec.Kind != pregel.KindReduce {
			return fmt.Errorf("channel %q: a %s channel has no default", c.Name, c.Kind)
		}
		spec.Name, spec.Default = c.Name, c.Default
		g.graph.Spec.Channels = append(g.graph.Spec.Channels, spec)
		g.kinds[c.Name] = spec.Kind
	}
	return nil
}

func (b *builder) addNode(g *built, prefix string, doc *nodeDoc) error {
	if (doc.Script == nil) == (doc.Subgraph == "") {
		return errors.New("a node has a script or a subgraph")
	}
	spec := pregel.NodeSpec{Name: doc.Name, Defer: doc.Defer, Subgraph: doc.Subgraph}
	var node graphadapter.Node
	if doc.Subgraph != "" {
		if err := b.addSubgraph(g, doc.Name, doc.Subgraph); err != nil {
			return err
		}
		spec.Retried = doc.Retry != nil
	} else {
		calls := map[string]bool{}
		steps, err := (&parser{counts: &b.counters.failures, calls: calls}).script(doc.Script)
		if err != nil {
			return err
		}
		for _, name := range trace.Keys(calls) {
			if err := b.addSubgraph(g, doc.Name, name); err != nil {
				return err
			}
		}
		node.Run = (&nodeScript{steps: steps, name: prefix + doc.Name, kinds: g.kinds, counters: b.counters, graphs: b}).run
	}
	if doc.Retry != nil {
		node.Retry = []graphadapter.RetryPolicy{{MaxAttempts: doc.Retry.MaxAttempts, InitialInterval: -1, NoJitter: true,
			RetryOn: func(error) bool { // a recursion limit too, as it was recorded
				if doc.Subgraph != "" {
					b.counters.retry()
				}
				return true
			}}}
	}
	g.graph.Spec.Nodes = append(g.graph.Spec.Nodes, spec)
	g.graph.Nodes[doc.Name] = node
	return nil
}

// addSubgraph makes a graph of the case available in g, for a node that is it or calls it.
func (b *builder) addSubgraph(g *built, node, name string) error {
	child, err := b.child(name)
	if err != nil {
		return err
	}
	if g.graph.Subgraphs == nil {
		g.graph.Subgraphs = map[string]*graphadapter.Graph{}
		g.graph.Spec.Subgraphs = map[string]*pregel.Spec{}
	}
	g.graph.Subgraphs[name] = child.graph
	g.graph.Spec.Subgraphs[name] = child.graph.Spec
	g.nodes[node] = child
	return nil
}

func (b *builder) addBranch(g *built, prefix string, doc *branchDoc) error {
	steps, err := (&parser{branch: true, counts: &b.counters.failures}).script(doc.Script)
	if err != nil {
		return err
	}
	spec := g.graph.Spec
	spec.Branches = append(spec.Branches, pregel.Branch{
		From: doc.From, Ordinal: len(spec.BranchesOf(doc.From)), Labels: doc.Paths.labels, Targets: doc.Paths.targets,
	})
	node := g.graph.Nodes[doc.From]
	script := &branchScript{steps: steps, name: "the branch of " + prefix + doc.From, counters: b.counters, graphs: b}
	node.Branches = append(node.Branches, script.run)
	g.graph.Nodes[doc.From] = node
	return nil
}

// writes turns an object of channel values into writes, in order of name: the order within one task shows nowhere.
func (g *built) writes(values map[string]any) []pregel.Write {
	out := make([]pregel.Write, 0, len(values))
	for _, channel := range trace.Keys(values) {
		out = append(out, toWrite(g.kinds, channel, values[channel]))
	}
	return out
}

// toWrite is one write as the engine takes it: on a reduce channel {"__overwrite__": v} sets the value to v.
func toWrite(kinds map[string]pregel.Kind, channel string, value any) pregel.Write {
	if object, ok := value.(map[string]any); ok && len(object) == 1 && kinds[channel] == pregel.KindReduce {
		if v, ok := object[overwriteKey]; ok {
			return pregel.Write{Channel: channel, Value: trace.Encode(v), Overwrite: true}
		}
	}
	return pregel.Write{Channel: channel, Value: trace.Encode(value)}
}

// overwriteKey marks a value that replaces instead of being reduced.
const overwriteKey = "__overwrite__"
