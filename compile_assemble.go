package superstep

import (
	"errors"
	"maps"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// assemble builds the graph of a builder without mistakes.
func (c *compiler) assemble() (*graphadapter.Graph, error) {
	g := &graphadapter.Graph{
		Spec: &pregel.Spec{
			Version:         pregel.SpecVersion,
			Name:            c.graph,
			Input:           c.channels.input.names(),
			Output:          c.channels.output.names(),
			InterruptBefore: c.options.before,
			InterruptAfter:  c.options.after,
			Durability:      string(c.options.durability),
			Fused:           c.options.fused,
		},
		Nodes:       map[string]graphadapter.Node{},
		Subgraphs:   map[string]*graphadapter.Graph{},
		CheckInput:  inputCheck(c.graph, c.channels.subset(c.channels.input)),
		CheckUpdate: updateCheck(c.graph, c.channels.fields),
		Reducers:    c.channels.reducers,
		Effects:     map[string]graphadapter.Effect{},
	}
	if c.options.cache != nil {
		g.Cache = cacheBackend{c.options.cache}
	}
	for _, f := range c.channels.fields {
		g.Spec.Channels = append(g.Spec.Channels, f.spec)
	}
	c.assembleNodes(g)
	c.assembleEdges(g)
	c.assembleBranches(g)
	c.assembleEffects(g)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	// The engine has the last word: what it refuses here it would refuse at every run.
	if _, err := g.Program(); err != nil {
		c.fail("", c.at, "%v", err)
		return nil, errors.Join(c.errs...)
	}
	return g, nil
}

func (c *compiler) assembleNodes(g *graphadapter.Graph) {
	for _, n := range c.nodes {
		o := c.optionsOf(n)
		handler := c.assembleHandler(g, n.name)
		spec := pregel.NodeSpec{
			Name:         n.name,
			Reads:        c.channels.reads(n.reads),
			Defer:        o.late,
			ErrorHandler: handler,
			TaskQueue:    o.taskQueue,
			RunTimeout:   o.run.Milliseconds(),
			IdleTimeout:  o.idle.Milliseconds(),
		}
		if n.subgraph {
			c.assembleSubgraph(g, n, &spec)
			g.Nodes[n.name] = graphadapter.Node{Retry: retryPolicies(o.retry, true)}
		} else {
			g.Nodes[n.name] = c.function(n, o)
		}
		g.Spec.Nodes = append(g.Spec.Nodes, spec)
	}
}

// function is a node that is a function.
func (c *compiler) function(n nodeDecl, o nodeOptions) graphadapter.Node {
	out := graphadapter.Node{Run: n.run(c.router(n.name)), Retry: retryPolicies(o.retry, false),
		RunTimeout: o.run, IdleTimeout: o.idle, Cache: o.cachePolicy()}
	if a := n.options.approval; a != nil {
		out.Run = a.before(c.router(n.name), n.reads != nil, out.Run)
	}
	if messages := c.channels.messages(); out.Cache != nil && len(messages) > 0 {
		out.Kept, out.Reused = unnamedMessages(messages), namedMessages(messages)
	}
	return out
}

// assembleSubgraph nests the other graph under the node's name. The nested Spec is a copy, because the same graph may
// be used elsewhere with another memory.
func (c *compiler) assembleSubgraph(g *graphadapter.Graph, n nodeDecl, spec *pregel.NodeSpec) {
	sub := n.sub.Adapter()
	nested := *sub.Spec
	nested.Durability, nested.Fused = "", false // those of the run that it is part of
	if m := n.options.memory; m != nil {
		nested.Memory = pregel.Memory(*m)
	}
	spec.Subgraph = n.name
	spec.Retried = len(c.optionsOf(n).retry) > 0
	if g.Spec.Subgraphs == nil {
		g.Spec.Subgraphs = map[string]*pregel.Spec{}
	}
	g.Spec.Subgraphs[n.name] = &nested
	g.Subgraphs[n.name] = &graphadapter.Graph{Spec: &nested, Nodes: sub.Nodes, Reducers: sub.Reducers,
		Subgraphs: sub.Subgraphs, CheckInput: sub.CheckInput, CheckUpdate: sub.CheckUpdate, Effects: sub.Effects}
	reducers := sub.AllReducers()
	for _, name := range slices.Sorted(maps.Keys(reducers)) {
		c.claimReducer(reducers[name], "the subgraph "+nested.Name, n.name, n.call)
	}
}

func (c *compiler) assembleEdges(g *graphadapter.Graph) {
	seen := map[edgeDecl]bool{}
	for _, e := range c.edges {
		key := edgeDecl{from: e.from, to: e.to}
		if seen[key] {
			continue
		}
		seen[key] = true
		g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: e.from, To: e.to})
	}
	for _, j := range c.joins {
		g.Spec.Joins = append(g.Spec.Joins, pregel.Join{From: append([]string(nil), j.from...), To: j.to})
	}
}

func (c *compiler) assembleBranches(g *graphadapter.Graph) {
	ordinals := map[string]int{}
	for _, b := range c.branches {
		g.Spec.Branches = append(g.Spec.Branches,
			pregel.Branch{From: b.from, Ordinal: ordinals[b.from], Targets: b.targets})
		ordinals[b.from]++
		r := c.router(b.from)
		if len(b.targets) > 0 {
			r.declared = map[string]bool{}
			for _, t := range b.targets {
				r.declared[t] = true
			}
		}
		n := g.Nodes[b.from]
		n.Branches = append(n.Branches, b.route(r))
		g.Nodes[b.from] = n
	}
}

func (c *compiler) router(node string) *router {
	return &router{graph: c.graph, node: node, known: c.nodeSet, subgraphs: c.subgraphs}
}

// retryPolicies are policies as the adapter takes them. What failed in a subgraph comes as data, so its RetryOn is given
// this package's kind of it.
func retryPolicies(in []RetryPolicy, subgraph bool) []graphadapter.RetryPolicy {
	var out []graphadapter.RetryPolicy
	for _, p := range in {
		if on := p.RetryOn; on != nil && subgraph {
			p.RetryOn = func(err error) bool {
				if failure, ok := nodeErrorOf(err); ok {
					err = failure
				}
				return on(err)
			}
		}
		out = append(out, graphadapter.RetryPolicy(p))
	}
	return out
}
