package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
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
	values := map[string]pregel.Held(in.State)
	if in.Arg != nil {
		values, sc.decoded = nil, nil // each Send has an argument of its own
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
		if t, ok := taskrun.TaskFrom(ctx); ok {
			sc.decoded = t.Decoded()
		}
		schemaFor[S]().bind(&s, sc, state)
		targets, err := route(ctx, s)
		if err := sc.with(err); err != nil {
			return nil, err
		}
		return r.resolve(targets)
	}
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
