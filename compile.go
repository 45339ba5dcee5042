package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/nearest"
	"superstep.dev/workflows/protocol"
)

// compiler turns a builder into a graph and collects what is wrong with it.
type compiler struct {
	*builder
	options compileOptions
	// at is the place of the Compile call.
	at   string
	errs []error
	// nodeSet holds the names of the nodes, byName the position of the first node of a name.
	nodeSet map[string]bool
	// subgraphs holds the names of the nodes that run a subgraph.
	subgraphs map[string]bool
	byName    map[string]int

	channels channelSet
}

// compile applies LangGraph's compile-time rules. Unreachable nodes are allowed.
func (b *builder) compile(opts []CompileOption, at string) (*graphadapter.Graph, error) {
	c := &compiler{builder: b, at: at, nodeSet: map[string]bool{}, subgraphs: map[string]bool{}, byName: map[string]int{}}
	for _, o := range opts {
		o.applyCompile(&c.options)
	}
	if problem := pregel.CheckName(b.graph); problem != "" {
		c.fail("", b.call, "%s", problem)
	}
	c.checkNodes()
	c.checkDefaults()
	c.checkHandlers()
	c.checkCache()
	c.addChannels()
	c.checkEdges()
	c.checkJoins()
	c.checkBranches()
	c.checkInterrupts()
	c.checkDurability()
	c.checkEffects()
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return c.assemble()
}

func (c *compiler) fail(node, call, format string, args ...any) {
	c.errs = append(c.errs, &CompileError{Graph: c.graph, Node: node, Call: call, Message: fmt.Sprintf(format, args...)})
}

func (c *compiler) checkNodes() {
	for i, n := range c.nodes {
		if problem := checkNodeName(n.name); problem != "" {
			c.fail(n.name, n.call, "%s", problem)
		}
		if first, twice := c.byName[n.name]; twice {
			c.fail(n.name, n.call, "it is already added at %s", c.nodes[first].call)
			continue
		}
		c.byName[n.name] = i
		c.nodeSet[n.name], c.subgraphs[n.name] = true, n.subgraph
		switch {
		case n.subgraph && isNil(n.sub):
			c.fail(n.name, n.call, "its subgraph is nil")
		case n.subgraph && n.sub.Adapter().Spec.Function:
			c.fail(n.name, n.call, "its subgraph is an entrypoint, which reads no state: add a node that calls its Invoke")
		case !n.subgraph && n.run == nil:
			c.fail(n.name, n.call, "its function is nil")
		}
		c.checkNodeOptions(n)
	}
}

// isNil also sees a nil *Graph in the interface.
func isNil(r Runnable) bool {
	v := reflect.ValueOf(r)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func checkNodeName(name string) string {
	if name == All {
		return fmt.Sprintf("the name %q is reserved: it stands for every node", name)
	}
	if problem := reservedForHandlers(name); problem != "" {
		return problem
	}
	return pregel.CheckName(name)
}

func (c *compiler) checkNodeOptions(n nodeDecl) {
	o := n.options
	if problem := policyProblem(o); problem != "" {
		c.fail(n.name, n.call, "%s", problem)
	}
	if problem := cacheProblem(n); problem != "" {
		c.fail(n.name, n.call, "%s", problem)
	}
	if problem := approvalProblem(n); problem != "" {
		c.fail(n.name, n.call, "%s", problem)
	}
	if !n.subgraph {
		if o.memory != nil {
			c.fail(n.name, n.call, "WithSubgraphMemory is for subgraphs")
		}
		return
	}
	if o.run > 0 || o.idle > 0 || o.taskQueue != "" {
		c.fail(n.name, n.call, "WithTimeout and WithTaskQueue are for functions: "+
			"give them to the nodes of the subgraph")
	}
	if m := o.memory; m != nil && *m != SubgraphMemoryRun && *m != SubgraphMemoryThread && *m != SubgraphMemoryNone {
		c.fail(n.name, n.call, "unknown subgraph memory %q", *m)
	}
}

// policyProblem says what is wrong with the bounds and policies of a node, or of all of them.
func policyProblem(o nodeOptions) string {
	if o.run < 0 || o.idle < 0 {
		return "a timeout must not be negative: 0 means no bound"
	}
	for _, p := range o.retry {
		if p.MaxAttempts < 0 || p.BackoffFactor < 0 || p.MaxInterval < 0 {
			return "a retry policy's MaxAttempts, BackoffFactor and MaxInterval must not be negative: 0 means the default"
		}
	}
	if o.cache != nil && o.cache.TTL < 0 {
		return "a cached result's TTL must not be negative: 0 means no end"
	}
	return ""
}

// source says what is wrong with a name as the beginning of an edge.
func (c *compiler) source(name string, startToo bool) string {
	switch {
	case name == End:
		return "nothing can follow the end of the graph"
	case name == Start && startToo, c.nodeSet[name]:
		return ""
	case name == Start:
		return "the start of the graph cannot be one of a join's sources"
	}
	return fmt.Sprintf("there is no node %q%s", name, nearest.DidYouMean(name, c.nodeSet))
}

// target says what is wrong with a name as the end of an edge.
func (c *compiler) target(name string) string {
	switch {
	case name == Start:
		return "the start of the graph cannot be a target"
	case name == End, c.nodeSet[name]:
		return ""
	}
	return fmt.Sprintf("there is no node %q%s", name, nearest.DidYouMean(name, c.nodeSet))
}

func (c *compiler) checkEdges() {
	entry := false
	for _, e := range c.edges {
		entry = entry || e.from == Start
		if problem := c.source(e.from, true); problem != "" {
			c.fail("", e.call, "the edge from %q to %q: %s", e.from, e.to, problem)
		}
		if problem := c.target(e.to); problem != "" {
			c.fail("", e.call, "the edge from %q to %q: %s", e.from, e.to, problem)
		}
		c.checkReachedByEdge(e.to, e.call)
	}
	for _, b := range c.branches {
		entry = entry || b.from == Start
	}
	if !entry {
		c.fail("", c.at, "it has no entry: add an edge from superstep.Start to its first node")
	}
}

// checkReachedByEdge refuses an edge to a node that only a Send can give its input.
func (c *compiler) checkReachedByEdge(to, call string) {
	at, ok := c.byName[to]
	if ok && c.nodes[at].reads == nil {
		c.fail(to, call, "an edge leads to it, but its input is a Send's argument: route to it with superstep.Send")
	}
}

func (c *compiler) checkJoins() {
	for _, j := range c.joins {
		if len(j.from) == 0 {
			c.fail("", j.call, "the join to %q has no sources", j.to)
		}
		seen := map[string]bool{}
		for _, from := range j.from {
			if problem := c.source(from, false); problem != "" {
				c.fail("", j.call, "the join to %q: %s", j.to, problem)
			}
			if seen[from] {
				c.fail("", j.call, "the join to %q names its source %q twice", j.to, from)
			}
			seen[from] = true
		}
		if problem := c.target(j.to); problem != "" {
			c.fail("", j.call, "the join to %q: %s", j.to, problem)
		}
		c.checkReachedByEdge(j.to, j.call)
	}
}

func (c *compiler) checkBranches() {
	for _, b := range c.branches {
		if b.route == nil {
			c.fail("", b.call, "the conditional edge from %q has no routing function", b.from)
		}
		if problem := c.source(b.from, true); problem != "" {
			c.fail("", b.call, "the conditional edge from %q: %s", b.from, problem)
		}
		for _, to := range b.targets {
			if problem := c.target(to); problem != "" {
				c.fail("", b.call, "the conditional edge from %q: %s", b.from, problem)
			}
		}
	}
}

func (c *compiler) checkCache() {
	if c.options.cacheGiven && c.options.cache == nil {
		c.fail("", c.at, "the cache of WithCacheBackend is nil")
	}
}

func (c *compiler) checkDurability() {
	if problem := protocol.DurabilityProblem(c.options.durability); problem != "" {
		c.fail("", c.at, "%s", problem)
	}
}

func (c *compiler) checkInterrupts() {
	for _, list := range [][]string{c.options.before, c.options.after} {
		for _, name := range list {
			if name != All && !c.nodeSet[name] {
				c.fail("", c.at, "the breakpoint at %q: there is no such node%s", name, nearest.DidYouMean(name, c.nodeSet))
			}
		}
	}
}

// builder is a StateGraph without its type.
type builder struct {
	graph    string
	call     string
	state    *schema
	nodes    []nodeDecl
	edges    []edgeDecl
	joins    []joinDecl
	branches []branchDecl
	effects  []effectDecl
	handlers []handlerDecl
	defaults []defaultsDecl
}

type nodeDecl struct {
	name, call string
	options    nodeOptions
	// run makes the node's function; nil for a subgraph, and for a nil function.
	run func(*router) graphadapter.NodeFunc
	// input is what its function takes; reads is what of the state it reads, nil when it only takes a Send's argument.
	input    reflect.Type
	reads    *schema
	sub      Runnable
	subgraph bool
}

type edgeDecl struct{ from, to, call string }

type joinDecl struct {
	from     []string
	to, call string
}

type branchDecl struct {
	from, call string
	targets    []string
	reads      *schema
	route      func(*router) graphadapter.BranchFunc
}

type effectDecl struct {
	effect AnyEffect
	call   string
}

type handlerDecl struct {
	node, call string
	input      reflect.Type
	reads      *schema
	// run makes the handler's function; nil for a nil function.
	run func(*router) graphadapter.HandlerFunc
}

type defaultsDecl struct {
	options nodeOptions
	call    string
}

// routing makes the untyped functions of a routing function; nil for a nil one.
func routing[In any](route func(context.Context, In) ([]Target, error)) func(*router) graphadapter.BranchFunc {
	if route == nil {
		return nil
	}
	return func(r *router) graphadapter.BranchFunc { return branchFunc(r, route) }
}

// The names of handler nodes, which are LangGraph's. They are seen in streams, histories and drawings.
const (
	handlerPrefix  = "__error_handler__"
	defaultHandler = "__default_error_handler__"
)

// optionsOf returns a node's options, completed by the graph's defaults. LangGraph's set_node_defaults.
func (c *compiler) optionsOf(n nodeDecl) nodeOptions {
	o := n.options
	if len(c.defaults) == 0 {
		return o
	}
	d := c.defaults[0].options
	if len(o.retry) == 0 {
		o.retry = d.retry
	}
	if n.subgraph {
		return o
	}
	if o.run == 0 && o.idle == 0 {
		o.run, o.idle = d.run, d.idle
	}
	if o.cache == nil {
		o.cache = d.cache
	}
	return o
}

func (c *compiler) checkDefaults() {
	for i, d := range c.defaults {
		if i > 0 {
			c.fail("", d.call, "the node defaults are already set at %s", c.defaults[0].call)
		}
		if d.options.approval != nil {
			c.fail("", d.call, "WithApproval is no default: give it to the nodes concerned")
		}
		if d.options.late || d.options.taskQueue != "" || d.options.memory != nil {
			c.fail("", d.call, "WithDefer, WithTaskQueue and WithSubgraphMemory are no defaults: give them to the nodes concerned")
		}
		if problem := policyProblem(d.options); problem != "" {
			c.fail("", d.call, "the node defaults: %s", problem)
		}
		if d.options.cache != nil && d.options.cache.Key.of != nil {
			c.fail("", d.call, "the node defaults: a cache key is of one node's input: give it to the nodes concerned")
		}
	}
}

func (c *compiler) checkHandlers() {
	seen := map[string]string{}
	for _, h := range c.handlers {
		at, known := c.byName[h.node]
		switch {
		case h.node == All:
			if h.reads == nil {
				c.fail("", h.call, "the default error handler takes %s, but a default handler has to take the state",
					jsonfit.TypeName(h.input))
			}
		case !known:
			c.fail("", h.call, "the error handler of %q: there is no such node%s", h.node, nearest.DidYouMean(h.node, c.nodeSet))
		case h.reads == nil && h.input != c.nodes[at].input:
			c.fail(h.node, h.call, "its error handler takes %s, but its own input is %s", jsonfit.TypeName(h.input),
				jsonfit.TypeName(c.nodes[at].input))
		case pregel.CheckName(handlerPrefix+h.node) != "":
			c.fail(h.node, h.call, "its name with an error handler's %s in front is too long", handlerPrefix)
		}
		if h.run == nil {
			c.fail(handledNode(h), h.call, "the error handler is nil")
		}
		if first, twice := seen[h.node]; twice {
			c.fail(handledNode(h), h.call, "the error handler is already added at %s", first)
			continue
		}
		seen[h.node] = h.call
	}
}

func handledNode(h handlerDecl) string {
	if h.node == All {
		return ""
	}
	return h.node
}

// handlerOf returns the error handler of a node and the name of its handler node, "" when it has none.
func (c *compiler) handlerOf(node string) (string, handlerDecl) {
	name, found := "", handlerDecl{}
	for _, h := range c.handlers {
		switch h.node {
		case node:
			return handlerPrefix + node, h
		case All:
			name, found = defaultHandler, h
		}
	}
	return name, found
}

// assembleHandler adds the node of an error handler, as LangGraph does before the node it belongs to; the default
// handler before the first node that has it.
func (c *compiler) assembleHandler(g *graphadapter.Graph, node string) string {
	name, h := c.handlerOf(node)
	if _, added := g.Nodes[name]; name == "" || added {
		return name
	}
	o := c.optionsOf(nodeDecl{})
	g.Nodes[name] = graphadapter.Node{Handle: h.run(c.router(name)), Retry: retryPolicies(o.retry, false),
		RunTimeout: o.run, IdleTimeout: o.idle}
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: name, Reads: c.channels.reads(h.reads), Handler: true,
		RunTimeout: o.run.Milliseconds(), IdleTimeout: o.idle.Milliseconds()})
	return name
}

// reservedForHandlers says what is wrong with a node's name that an error handler could have.
func reservedForHandlers(name string) string {
	if strings.HasPrefix(name, handlerPrefix) || name == defaultHandler {
		return fmt.Sprintf("the name %q is reserved for error handlers", name)
	}
	return ""
}
