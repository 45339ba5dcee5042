package superstep

import (
	"context"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

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
				if in.Arg != nil && kindOf(in.Arg) != '{' {
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
