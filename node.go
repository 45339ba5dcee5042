package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/nearest"
)

// nodeFunc makes the untyped function of a node that reads In and writes S.
func nodeFunc[S, In any](r *router, node func(context.Context, In) (Command[S], error)) graphadapter.NodeFunc {
	return func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
		sc := taskScope(ctx, r.graph, r.node)
		input, err := readInput[In](sc, in, isStateOf[In, S]())
		if err != nil {
			return pregel.Command{}, graphadapter.Permanent(err)
		}
		command, err := node(ctx, input)
		if err := sc.with(err); err != nil {
			return pregel.Command{}, err
		}
		return encodeCommand(r, sc, &command)
	}
}

// isStateOf reports whether In is read from the state: the state type itself or another struct of channels.
func isStateOf[In, S any]() bool {
	t := reflect.TypeFor[In]()
	return t == reflect.TypeFor[S]() || isState(t)
}

// with returns the node's own error together with what failed unseen while it read its state.
func (s *scope) with(err error) error {
	failure := s.failure()
	switch {
	case failure == nil:
		return err
	case err != nil:
		failure = fmt.Errorf("%w (then the node returned: %w)", failure, err)
	}
	return graphadapter.Permanent(failure) // the stored value will not change
}

// readInput makes a node's input from the state, or from a Send's argument.
func readInput[In any](sc *scope, in graphadapter.Input, fromState bool) (In, error) {
	var out In
	if !fromState {
		if in.Arg == nil {
			return out, fmt.Errorf("its input %s is the argument of a Send, but it was reached without one: "+
				"route to it with superstep.Send", jsonfit.TypeName(reflect.TypeFor[In]()))
		}
		if err := jsonfit.Decode(in.Arg, &out); err != nil {
			return out, inputError[In](sc, err)
		}
		return out, nil
	}
	values := map[string]pregel.Value(in.State)
	if in.Arg != nil {
		values = nil
		if jsonfit.KindOf(in.Arg) != '{' {
			return out, inputError[In](sc, errors.New("the argument of the Send is "+jsonfit.Found(in.Arg)+", not an object"))
		}
		if err := json.Unmarshal(in.Arg, &values); err != nil {
			return out, inputError[In](sc, err)
		}
	}
	schemaFor[In]().bind(&out, sc, values)
	return out, nil
}

func inputError[In any](sc *scope, cause error) error {
	return &StateError{Graph: sc.graph, Node: sc.node, Type: jsonfit.TypeName(reflect.TypeFor[In]()), Cause: cause}
}

func encodeCommand[S any](r *router, sc *scope, c *Command[S]) (pregel.Command, error) {
	var out pregel.Command
	var err error
	if out.Update, err = schemaFor[S]().collect(&c.Update, sc); err != nil {
		return pregel.Command{}, graphadapter.Permanent(err)
	}
	if out.Goto, err = r.resolve(c.Goto); err != nil {
		return pregel.Command{}, err
	}
	if c.Parent == nil {
		return out, nil
	}
	if len(out.Update) > 0 || len(out.Goto) > 0 {
		return pregel.Command{}, graphadapter.Permanent(errors.New("a command with Parent must have neither Update nor " +
			"Goto: the subgraph ends with it"))
	}
	out.Parent, err = r.parent(c.Parent, sc)
	return out, err
}

// branchFunc makes the untyped function of a conditional edge.
func branchFunc[S any](r *router, route func(context.Context, S) ([]Target, error)) graphadapter.BranchFunc {
	return func(ctx context.Context, state graphadapter.State) ([]pregel.Target, error) {
		var s S
		sc := newScope(r.graph, r.node)
		schemaFor[S]().bind(&s, sc, state)
		targets, err := route(ctx, s)
		if err := sc.with(err); err != nil {
			return nil, err
		}
		return r.resolve(targets)
	}
}

// The names of handler nodes, which are LangGraph's. They are seen in streams, histories and drawings.
const (
	handlerPrefix  = "__error_handler__"
	defaultHandler = "__default_error_handler__"
)

type handlerDecl struct {
	node, call string
	input      reflect.Type
	reads      *schema
	// run makes the handler's function; nil for a nil function.
	run func(*router) graphadapter.HandlerFunc
}

// AddErrorHandler lets handler take over when a task of the node has failed for good: after its retry policy, in the
// same superstep, with the state that the node read and the reason. Then the task counts as done: what handler writes
// and where it goes apply in its place, and the node's own edges do not fire. With [All] it is the handler of every node
// that has none of its own.
//
// A handler may call Tasks and Effects and ask questions. It is not given questions, breakpoints, drains and commands to
// a parent graph, which are no failures; nor a failed conditional edge from [Start]. It has no handler: its own failure
// fails the run, after [StateGraph.SetNodeDefaults]' retry policies. Once the failure is on record the node does not run
// again, whatever crashes. On a subgraph node it handles what failed inside, after everything the subgraph did to handle
// it itself.
//
// A node that was reached by a [Send] leaves its argument: handler's state holds its fields, and none when it is no
// object of fields. See [AddInputErrorHandler] for such nodes.
func (g *StateGraph[S]) AddErrorHandler(
	node string, handler func(context.Context, S, *NodeError) (Command[S], error),
) {
	d := handlerDecl{node: node, call: calledAt(), input: g.b.state.typ, reads: g.b.state}
	if handler != nil {
		d.run = func(r *router) graphadapter.HandlerFunc {
			run := handlerFunc(r, handler)
			return func(ctx context.Context, in graphadapter.Input, failure *pregel.NodeError) (pregel.Command, error) {
				if in.Arg != nil && jsonfit.KindOf(in.Arg) != '{' {
					in.Arg = pregel.Value("{}")
				}
				return run(ctx, in, failure)
			}
		}
	}
	g.b.handlers = append(g.b.handlers, d)
}

// AddInputErrorHandler is AddErrorHandler for a node made with [AddInputNode]: handler takes what the node took.
func AddInputErrorHandler[S, In any](
	g *StateGraph[S], node string, handler func(context.Context, In, *NodeError) (Command[S], error),
) {
	d := handlerDecl{node: node, call: calledAt(), input: reflect.TypeFor[In]()}
	if isStateOf[In, S]() {
		d.reads = schemaFor[In]()
	}
	if handler != nil {
		d.run = func(r *router) graphadapter.HandlerFunc { return handlerFunc(r, handler) }
	}
	g.b.handlers = append(g.b.handlers, d)
}

// handlerFunc makes the untyped function of an error handler: a node that is also given the failure.
func handlerFunc[S, In any](
	r *router, handler func(context.Context, In, *NodeError) (Command[S], error),
) graphadapter.HandlerFunc {
	return func(ctx context.Context, in graphadapter.Input, failure *pregel.NodeError) (pregel.Command, error) {
		given, _ := nodeErrorOf(failure)
		run := nodeFunc(r, func(ctx context.Context, input In) (Command[S], error) { return handler(ctx, input, given) })
		return run(ctx, in)
	}
}

type defaultsDecl struct {
	options nodeOptions
	call    string
}

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
			c.fail("", d.call, "WithDefer, WithTaskQueue and WithMemory are no defaults: give them to the nodes concerned")
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
