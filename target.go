package superstep

import (
	"fmt"
	"reflect"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/nearest"
)

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
