package superstep

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
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
		Schemas:     c.schemas,
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
		Subgraphs: sub.Subgraphs, Schemas: sub.Schemas, CheckInput: sub.CheckInput, CheckUpdate: sub.CheckUpdate, Effects: sub.Effects}
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
func retryPolicies(in []RetryPolicy, subgraph bool) []RetryPolicy {
	var out []RetryPolicy
	for _, p := range in {
		if on := p.RetryOn; on != nil && subgraph {
			p.RetryOn = func(err error) bool {
				if failure, ok := nodeErrorOf(err); ok {
					err = failure
				}
				return on(err)
			}
		}
		out = append(out, p)
	}
	return out
}

func (c *compiler) checkEffects() {
	seen := map[string]string{}
	for _, d := range c.effects {
		if d.effect == nil {
			c.fail("", d.call, "the effect is nil")
			continue
		}
		name := d.effect.effectName()
		if err := d.effect.problem(); err != nil {
			c.fail("", d.call, "%v", err)
		}
		if name == storeEffectName {
			c.fail("", d.call, "the name %q is reserved for the effect that writes to the store", name)
		}
		if first, twice := seen[name]; twice {
			c.fail("", d.call, "the effect %q is already added at %s", name, first)
		}
		seen[name] = d.call
	}
}

func (c *compiler) assembleEffects(g *graphadapter.Graph) {
	g.Effects[storeEffectName] = storeEffect()
	for _, d := range c.effects {
		g.Effects[d.effect.effectName()] = d.effect.adapter()
	}
}

// channelSet is the union of a graph's schemas.
type channelSet struct {
	fields []schemaField
	byName map[string]int
	// input and output are the graph's schemas.
	input, output *schema
	reducers      map[string]pregel.Reducer
	kinds         map[string]reflect.Type // custom reducer's name → its Go type
}

// addChannels merges the state's channels with those of the input and output schemas and of the nodes' own inputs. The
// state comes first: what it declares is what the graph has.
func (c *compiler) addChannels() {
	c.channels = channelSet{byName: map[string]int{}, input: c.state, output: c.state,
		reducers: map[string]pregel.Reducer{}, kinds: map[string]reflect.Type{}}
	c.addSchema(c.state, "", c.call)
	if c.options.input != nil {
		c.channels.input = schemaOf(c.options.input)
		c.addSchema(c.channels.input, "", c.at)
	}
	if c.options.output != nil {
		c.channels.output = schemaOf(c.options.output)
		c.addSchema(c.channels.output, "", c.at)
	}
	for _, n := range c.nodes {
		if n.reads != nil && n.reads != c.state {
			c.addSchema(n.reads, n.name, n.call)
		}
	}
	for _, b := range c.branches {
		if b.reads != nil && b.reads != c.state {
			c.addSchema(b.reads, "", b.call)
		}
	}
	for _, h := range c.handlers {
		if h.reads != nil && h.reads != c.state {
			c.addSchema(h.reads, handledNode(h), h.call)
		}
	}
}

func (c *compiler) addSchema(s *schema, node, call string) {
	for _, problem := range s.problems {
		c.fail(node, call, "%s", problem)
	}
	for _, f := range s.fields {
		c.addReducer(f, node, call)
		at, known := c.channels.byName[f.name]
		if !known {
			c.channels.byName[f.name] = len(c.channels.fields)
			c.channels.fields = append(c.channels.fields, f)
			continue
		}
		c.checkSame(c.channels.fields[at], f, node, call)
	}
}

// checkSame holds two declarations of one channel against each other: the values must be of the same type, and the
// update rules the same, except that a superstep.Value only looks at what another schema declares (LangGraph's rule).
func (c *compiler) checkSame(have, other schemaField, node, call string) {
	if have.value != other.value {
		c.fail(node, call, "%s and %s share the channel %q, but one holds %s and the other %s",
			have.path, other.path, have.name, jsonfit.TypeName(have.value), jsonfit.TypeName(other.value))
		return
	}
	if other.spec.Kind != pregel.KindLast && !sameRule(have.spec, other.spec) {
		c.fail(node, call, "%s and %s share the channel %q with different update rules (%s and %s): "+
			"declare the second as superstep.Value", have.path, other.path, have.name, ruleName(have.spec), ruleName(other.spec))
	}
}

func sameRule(a, b pregel.ChannelSpec) bool {
	return a.Kind == b.Kind && a.Reducer == b.Reducer && a.Accumulate == b.Accumulate && a.Unguarded == b.Unguarded
}

func ruleName(s pregel.ChannelSpec) string {
	if s.Reducer != "" {
		return s.Reducer
	}
	return string(s.Kind)
}

// addReducer registers a field's custom reducer.
func (c *compiler) addReducer(f schemaField, node, call string) {
	if f.reducer != nil && c.claimReducer(f.reducer, f.path, node, call) {
		c.channels.reducers[f.reducer.Name()] = f.reducer
	}
}

// claimReducer refuses a name that stands for another implementation, here or in a subgraph: stored data knows
// reducers by name only.
func (c *compiler) claimReducer(r pregel.Reducer, where, node, call string) bool {
	name, t := r.Name(), reflect.TypeOf(r)
	if custom, ok := r.(customReducer); ok {
		t = custom.implementation()
	}
	if other, taken := c.channels.kinds[name]; taken && other != t {
		c.fail(node, call, "%s uses the reducer name %q for %s, which is already that of %s",
			where, name, jsonfit.TypeName(t), jsonfit.TypeName(other))
		return false
	}
	c.channels.kinds[name] = t
	return true
}

// messages returns the channels that hold conversations.
func (s *channelSet) messages() []string {
	var out []string
	for _, f := range s.fields {
		if f.spec.Reducer == messagesReducer {
			out = append(out, f.name)
		}
	}
	return out
}

// subset returns the merged channels of a schema.
func (s *channelSet) subset(of *schema) []schemaField {
	out := make([]schemaField, len(of.fields))
	for i, f := range of.fields {
		out[i] = s.fields[s.byName[f.name]]
	}
	return out
}

// schemas are what the graph's values look like.
func (c *compiler) schemas() graphadapter.Schemas {
	s := &c.channels
	return graphadapter.Schemas{Input: shape(s.subset(s.input)), Output: shape(s.subset(s.output)), State: shape(s.fields), Context: c.contextShape()}
}

// shape is the JSON schema of an object of channels. None has to be there: a run may go on with what the thread has.
func shape(fields []schemaField) pregel.Value {
	properties := map[string]pregel.Value{}
	for _, f := range fields {
		properties[f.name] = jsonfit.Shape(f.value)
	}
	return jsonfit.Object(properties)
}

func (c *compiler) contextShape() pregel.Value {
	if c.options.context == nil {
		return nil
	}
	return jsonfit.Shape(c.options.context)
}

// reads returns the channels of a schema for a NodeSpec: nil when they are all that the graph has.
func (s *channelSet) reads(of *schema) []string {
	if of == nil || len(of.fields) == len(s.fields) {
		return nil
	}
	return of.names()
}

// cacheProblem says what is wrong with a node's cache policy.
func cacheProblem(n nodeDecl) string {
	c := n.options.cache
	switch {
	case c == nil:
		return ""
	case n.subgraph:
		return "WithCache is for functions, and this is a subgraph, whose tasks have results of their own: give it to the " +
			"nodes of the subgraph"
	case c.Key.of != nil && c.Key.input != n.input:
		return fmt.Sprintf("its cache key is made of %s, but its input is %s", jsonfit.TypeName(c.Key.input), jsonfit.TypeName(n.input))
	}
	return ""
}

// cachePolicy is a node's policy as the adapter takes it.
func (o nodeOptions) cachePolicy() *graphadapter.CachePolicy {
	if o.cache == nil {
		return nil
	}
	return &graphadapter.CachePolicy{TTL: o.cache.TTL, Key: o.cache.Key.of}
}
