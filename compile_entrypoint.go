package superstep

import (
	"errors"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// compileEntrypoint compiles the graph of one function. All that it lacks are the checks of values.
func compileEntrypoint(n nodeDecl, returns reflect.Type, o entrypointOptions) (*graphadapter.Graph, error) {
	c := &compiler{builder: &builder{graph: n.name, call: n.call, nodes: []nodeDecl{n}, effects: o.effects}, options: o.compile,
		at: n.call, nodeSet: map[string]bool{}, subgraphs: map[string]bool{}, byName: map[string]int{}}
	c.checkNodes()
	c.checkCache()
	c.checkInterrupts()
	c.checkDurability()
	c.checkEffects()
	c.checkEntrypoint(n, returns)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	g := c.entrypoint(n)
	if _, err := g.Program(); err != nil {
		c.fail("", c.at, "%v", err)
		return nil, errors.Join(c.errs...)
	}
	return g, nil
}

// checkEntrypoint refuses types and options that mean something for state graphs only.
func (c *compiler) checkEntrypoint(n nodeDecl, returns reflect.Type) {
	for _, t := range []reflect.Type{n.input, returns} {
		if isState(t) {
			c.fail(n.name, n.call, "it takes or returns %s, a struct of channels: an entrypoint's values are plain types", typeName(t))
		}
	}
	if n.options.late {
		c.fail(n.name, n.call, "WithDefer is for nodes that others can run before")
	}
	if c.options.input != nil || c.options.output != nil {
		c.fail(n.name, n.call, "WithInput and WithOutput are for state graphs: the input and the output are those of the function")
	}
}

func (c *compiler) entrypoint(n nodeDecl) *graphadapter.Graph {
	o := n.options
	node := c.function(n, o)
	if node.Cache != nil && node.Cache.Key != nil {
		key := node.Cache.Key // of the function's argument, as it is of a Send's
		node.Cache.Key = func(in graphadapter.Input) (string, error) {
			return key(graphadapter.Input{Arg: in.State[pregel.FunctionInput]})
		}
	}
	g := &graphadapter.Graph{
		Spec: pregel.FunctionSpec(n.name, pregel.NodeSpec{Name: n.name, TaskQueue: o.taskQueue,
			RunTimeout: o.run.Milliseconds(), IdleTimeout: o.idle.Milliseconds()}),
		Nodes:     map[string]graphadapter.Node{n.name: node},
		Subgraphs: map[string]*graphadapter.Graph{},
		Effects:   map[string]graphadapter.Effect{},
	}
	g.Spec.InterruptBefore, g.Spec.InterruptAfter = c.options.before, c.options.after
	g.Spec.Durability, g.Spec.Fused = string(c.options.durability), c.options.fused
	if c.options.cache != nil {
		g.Cache = cacheBackend{c.options.cache}
	}
	c.assembleEffects(g)
	return g
}
