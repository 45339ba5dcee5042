package superstep

import (
	"fmt"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/nearest"
)

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
