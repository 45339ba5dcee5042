package superstep

import (
	"context"
	"reflect"

	"superstep.dev/graphadapter"
)

// StateGraph builds a graph over the state S: a struct whose exported fields are channels ([Value], [List], [Sum],
// [Map], [Messages], [Reduced], [AnyValue], [Ephemeral], [Untracked], [Topic]). A field's json tag is its channel's
// name, without a tag it is the field's own; embedded structs flatten; `json:"-"` leaves a field out.
//
// Mistakes are reported by Compile, all at once, each with the place of the call that made it. A StateGraph is not
// safe for concurrent use; the compiled graph is.
type StateGraph[S any] struct{ b builder }

// NewStateGraph returns an empty graph. The name is part of stored data and of activity names: it is not empty, has at
// most 100 bytes and none of the characters . | : / !
func NewStateGraph[S any](name string) *StateGraph[S] {
	return &StateGraph[S]{builder{graph: name, call: calledAt(), state: schemaFor[S]()}}
}

// AddNode adds a node: a function of the state that returns it with what it writes. Only the fields that it wrote
// count. When the node was reached by a [Send], the state holds the fields of the Send's argument and nothing else.
//
// The function may be called again for the same task, after a crash, a retry or an answer: what it does to the outside
// belongs in a Task or an Effect. An error fails the attempt; see [WithRetry].
func (g *StateGraph[S]) AddNode(name string, node func(context.Context, S) (S, error), opts ...NodeOption) {
	d := nodeDecl{name: name, call: calledAt(), options: nodeOptionsOf(opts), input: g.b.state.typ, reads: g.b.state}
	if node != nil {
		d.run = func(r *router) graphadapter.NodeFunc {
			return nodeFunc(r, func(ctx context.Context, s S) (Command[S], error) {
				out, err := node(ctx, s)
				return Command[S]{Update: out}, err
			})
		}
	}
	g.b.nodes = append(g.b.nodes, d)
}

// AddCommandNode adds a node that also chooses where to go; see [Command]. Its targets need no edge.
func (g *StateGraph[S]) AddCommandNode(
	name string, node func(context.Context, S) (Command[S], error), opts ...NodeOption,
) {
	d := nodeDecl{name: name, call: calledAt(), options: nodeOptionsOf(opts), input: g.b.state.typ, reads: g.b.state}
	if node != nil {
		d.run = func(r *router) graphadapter.NodeFunc { return nodeFunc(r, node) }
	}
	g.b.nodes = append(g.b.nodes, d)
}

// AddInputNode adds a node with an input of its own. In is one of two things: a struct of channels, read from the
// state, whose fields that the state does not have become private channels, written by such nodes and not part of
// the graph's input and output; or any other type, the argument of the [Send] that reaches the node.
func AddInputNode[S, In any](
	g *StateGraph[S], name string, node func(context.Context, In) (Command[S], error), opts ...NodeOption,
) {
	d := nodeDecl{name: name, call: calledAt(), options: nodeOptionsOf(opts), input: reflect.TypeFor[In]()}
	if isStateOf[In, S]() {
		d.reads = schemaFor[In]()
	}
	if node != nil {
		d.run = func(r *router) graphadapter.NodeFunc { return nodeFunc(r, node) }
	}
	g.b.nodes = append(g.b.nodes, d)
}

// AddSubgraph adds a node that runs another graph. Fields are matched by name: the subgraph's input fields are read
// from this graph's state, and its output fields are written to it as updates; so a reducing field that both have is
// reduced again with the subgraph's whole value (LangGraph's rule). See [WithSubgraphMemory] for what it remembers.
func (g *StateGraph[S]) AddSubgraph(name string, sub Runnable, opts ...NodeOption) {
	g.b.nodes = append(g.b.nodes, nodeDecl{name: name, call: calledAt(), options: nodeOptionsOf(opts),
		input: g.b.state.typ, reads: g.b.state, sub: sub, subgraph: true})
}

// AddEdge makes to run after from. Start is the entry, and End as a target says that nothing follows.
func (g *StateGraph[S]) AddEdge(from, to string) {
	g.b.edges = append(g.b.edges, edgeDecl{from, to, calledAt()})
}

// AddJoin makes to run once, after all of from have run; the supersteps may be different ones.
func (g *StateGraph[S]) AddJoin(from []string, to string) {
	g.b.joins = append(g.b.joins, joinDecl{append([]string(nil), from...), to, calledAt()})
}

// AddConditionalEdges lets route choose what runs after from, on the state with from's own writes and no sibling's.
// targets are the nodes it may choose, [End] among them when it may finish; none means any node. No target means that
// nothing follows. A target that is not declared, or not in the graph, fails the task with a *[TargetError].
//
// route runs in from's task: its errors and retries are the node's. From Start it chooses the entry.
func (g *StateGraph[S]) AddConditionalEdges(
	from string, route func(context.Context, S) ([]Target, error), targets ...string,
) {
	g.b.addBranch(from, calledAt(), g.b.state, routing(route), targets)
}

// AddInputEdges is AddConditionalEdges with a routing function that reads something else than the state: In is a struct
// of channels, whose fields that the state does not have become private channels, as those of [AddInputNode].
func AddInputEdges[S, In any](
	g *StateGraph[S], from string, route func(context.Context, In) ([]Target, error), targets ...string,
) {
	g.b.addBranch(from, calledAt(), schemaFor[In](), routing(route), targets)
}

func (b *builder) addBranch(
	from, call string, reads *schema, route func(*router) graphadapter.BranchFunc, targets []string,
) {
	b.branches = append(b.branches,
		branchDecl{from: from, call: call, reads: reads, targets: append([]string(nil), targets...), route: route})
}

// AddEffect registers the effects that the graph's nodes call: reconciliation and compensation need them after the
// node is gone, perhaps in another process.
func (g *StateGraph[S]) AddEffect(effects ...AnyEffect) {
	for _, e := range effects {
		g.b.effects = append(g.b.effects, effectDecl{e, calledAt()})
	}
}

// Compile checks the graph and returns it ready to run. The error joins a *[CompileError] for each mistake. The
// StateGraph may be changed and compiled again; graphs already compiled stay as they are.
func (g *StateGraph[S]) Compile(opts ...CompileOption) (*Graph[S], error) {
	return compileState[S](&g.b, opts, calledAt())
}

// MustCompile is Compile for graphs that are right by construction: it panics with the joined error.
func (g *StateGraph[S]) MustCompile(opts ...CompileOption) *Graph[S] {
	compiled, err := compileState[S](&g.b, opts, calledAt())
	if err != nil {
		panic(err)
	}
	return compiled
}

func compileState[S any](b *builder, opts []CompileOption, call string) (*Graph[S], error) {
	adapter, err := b.compile(opts, call)
	if err != nil {
		return nil, err
	}
	return &Graph[S]{adapter: adapter}, nil
}

// SetNodeDefaults gives options to all nodes that lack them, whenever those are added: [WithRetry] and [WithTimeout],
// which error handlers get too, and [WithCache]. Subgraph nodes take the retry policies only, and the nodes inside a
// subgraph take nothing: its own graph has defaults of its own. For a default error handler see
// [StateGraph.AddErrorHandler].
func (g *StateGraph[S]) SetNodeDefaults(opts ...NodeOption) {
	g.b.defaults = append(g.b.defaults, defaultsDecl{nodeOptionsOf(opts), calledAt()})
}

func nodeOptionsOf(opts []NodeOption) (out nodeOptions) {
	for _, o := range opts {
		o.applyNode(&out)
	}
	return out
}
