package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
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

// The reserved node names; All stands for every node in a list of breakpoints.
const (
	Start = pregel.Start
	End   = pregel.End
	All   = pregel.All
)

// Target is one way that control goes after a node: to a node, or to a task of its own with an argument. Make them
// with [To], [Send] and [SendEach], and join them with append.
type Target struct {
	node string
	send bool
	arg  pregel.Value
	own  pregel.Timeouts
	err  error
}

// To goes to nodes, or to [End].
func To(nodes ...string) []Target {
	out := make([]Target, len(nodes))
	for i, n := range nodes {
		out[i].node = n
	}
	return out
}

// Send runs a node as a task of its own in the next superstep, with arg as its input instead of the state: a value
// that encodes as JSON, or a state struct, of which the fields with a value are sent. A node made with AddInputNode
// takes it as its input type, any other as a JSON object of state fields. An arg that does not encode fails the task
// that routes.
func Send(node string, arg any) []Target {
	raw, err := encodeArg(arg)
	if err != nil {
		err = fmt.Errorf("the argument of the Send to %q does not encode as JSON: %w", node, err)
	}
	return []Target{{node: node, send: true, arg: raw, err: err}}
}

// SendWithin is [Send] with timeouts of the task's own: they replace the node's, both of them. run bounds the whole
// duration of an attempt, idle the time without progress, as in [WithTimeout]; they are rounded up to milliseconds. 0
// means no bound; with both 0 the node's timeouts count. A subgraph's node can have none.
func SendWithin(run, idle time.Duration, node string, arg any) []Target {
	out := Send(node, arg)
	if run < 0 || idle < 0 {
		out[0].err = fmt.Errorf("the timeouts of the Send to %q must not be negative: 0 means no bound", node)
		return out
	}
	out[0].own = pregel.Timeouts{RunTimeout: wholeMilliseconds(run), IdleTimeout: wholeMilliseconds(idle)}
	return out
}

// wholeMilliseconds rounds up: a bound that is too short to be stored is still one.
func wholeMilliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	return ms
}

// SendEach runs a node once for each argument; see [Send].
func SendEach[T any](node string, args []T) []Target {
	out := make([]Target, 0, len(args))
	for _, arg := range args {
		out = append(out, Send(node, arg)...)
	}
	return out
}

// String returns the node's name, with the argument for a Send.
func (t Target) String() string {
	if t.send {
		return fmt.Sprintf("%s(%s)", t.node, t.arg)
	}
	return t.node
}

func (t Target) target() pregel.Target {
	return pregel.Target{Node: t.node, Send: t.send, Arg: t.arg, Timeouts: t.own}
}

// encodeArg encodes a state struct by its channels and anything else as JSON.
func encodeArg(arg any) (pregel.Value, error) {
	v := reflect.ValueOf(arg)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if !v.IsValid() || !isState(v.Type()) {
		return jsonfit.Encode(arg)
	}
	at := reflect.New(v.Type())
	at.Elem().Set(v)
	return schemaOf(v.Type()).object(at.Interface())
}

// Command is what a node returns to write and to choose where to go. Goto adds to the node's edges, it never replaces
// them (LangGraph's rule).
//
// Where LangGraph's nodes may return a list of commands, one does here: a field may be written several times in an
// Update, in order, and a Goto takes any number of targets.
type Command[S any] struct {
	// Update is a state of which only the fields that were written count.
	Update S
	Goto   []Target
	// Parent addresses the graph that this one is a subgraph of; see [ToParent]. It excludes Update and Goto.
	Parent *ParentCommand
}

// ParentCommand is a command to the parent graph; see [ToParent].
type ParentCommand struct {
	writes func(*scope) ([]pregel.Write, error)
	to     []Target
}

// ToParent ends the run of this subgraph with a command to its parent graph, whose state type is P: the parent takes
// it as if the node that runs the subgraph had returned it. What the subgraph wrote in this superstep is dropped.
func ToParent[P any](update P, to []Target) *ParentCommand {
	return &ParentCommand{to: to, writes: func(sc *scope) ([]pregel.Write, error) {
		s := schemaFor[P]()
		if len(s.problems) > 0 {
			return nil, fmt.Errorf("its update cannot be used: %s", s.problems[0])
		}
		copied := update // so that a command may be returned twice
		return s.collect(&copied, sc)
	}}
}

// router turns targets into the engine's, for one node.
type router struct {
	graph, node string
	// known are the graph's nodes, subgraphs those of them that run a subgraph.
	known, subgraphs map[string]bool
	// declared are the ways that a conditional edge may take; nil means any.
	declared map[string]bool
}

// resolve refuses what the graph does not have. LangGraph ignores such targets and the run ends silently; a typo
// would look like a finished run.
func (r *router) resolve(targets []Target) ([]pregel.Target, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	out := make([]pregel.Target, len(targets))
	for i, t := range targets {
		if t.err != nil {
			return nil, graphadapter.Permanent(t.err)
		}
		if problem := r.problem(t); problem != "" {
			return nil, graphadapter.Permanent(&TargetError{Graph: r.graph, Node: r.node, Target: t.node, Message: problem})
		}
		out[i] = t.target()
	}
	return out, nil
}

func (r *router) problem(t Target) string {
	switch {
	case t.node == Start:
		return "the start of a graph is not a target"
	case t.node == End && t.send:
		return "a Send needs a node, not the end of the graph"
	case t.node != End && !r.known[t.node]:
		return "there is no such node" + nearest.DidYouMean(t.node, r.known)
	case t.own.Bounds() && r.subgraphs[t.node]:
		return "a subgraph's node has no timeouts: give them to the nodes of the subgraph"
	case r.declared != nil && !r.declared[t.node]:
		return fmt.Sprintf("the conditional edge declares only %s: add it to the targets of AddConditionalEdges",
			nearest.QuotedList(r.declared))
	}
	return ""
}

// parent converts a command to the parent graph. Its targets are checked where the parent takes it.
func (r *router) parent(p *ParentCommand, sc *scope) (*pregel.Command, error) {
	writes, err := p.writes(sc)
	if err != nil {
		return nil, graphadapter.Permanent(fmt.Errorf("the command to the parent graph: %w", err))
	}
	out := &pregel.Command{Update: writes}
	for _, t := range p.to {
		if t.err != nil {
			return nil, graphadapter.Permanent(t.err)
		}
		out.Goto = append(out.Goto, t.target())
	}
	return out, nil
}
