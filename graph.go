package superstep

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/draw"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/nearest"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// Graph is a compiled graph whose results are of type Out: for a [StateGraph], its state. It is read-only and safe for
// concurrent use.
type Graph[Out any] struct{ adapter *graphadapter.Graph }

// Name returns the graph's name.
func (g *Graph[Out]) Name() string { return g.adapter.Spec.Name }

// Adapter returns the graph without its types: what workers, runtimes and tools take. It must not be changed.
func (g *Graph[Out]) Adapter() *graphadapter.Graph { return g.adapter }

// GraphOf returns the graph that an adapter is: [Graph.Adapter] the other way round, for tools and tests that make a graph
// of the parts of another. Out is the graph's state type, or any when nobody reads results by their fields. The adapter
// must not be changed afterwards.
func GraphOf[Out any](adapter *graphadapter.Graph) *Graph[Out] { return &Graph[Out]{adapter: adapter} }

// Invoke runs the graph in this process, without a thread: nothing is kept, so a question cannot be answered. Use a
// thread for that. Input is a state struct (or one of the type given to [WithInput]) of which the written fields count,
// JSON text as json.RawMessage or []byte, or anything that encodes as a JSON object of the input's fields.
//
// Inside a node (with the context that the node was given) the graph is part of the node's task: its questions are the
// task's, so Invoke returns [ErrInterrupted] for the node to pass on while one is open; its effects are recorded with
// the task; and once it has finished it is not run again when the node is. Options have no meaning there.
//
// Errors are those of [Thread.Wait].
func (g *Graph[Out]) Invoke(ctx context.Context, input any, opts ...RunOption) (Result[Out], error) {
	o := runOptionsOf(opts)
	run, err := newStart(g.adapter, "", input, o)
	if err != nil {
		return Result[Out]{}, err
	}
	if _, inside := taskrun.TaskFrom(ctx); inside {
		return g.invokeNested(ctx, run)
	}
	view, events := thread.View{Graph: g.Name()}, runtime.Trace{}
	options := runtime.EngineOptions(run, events.Observe)
	options.Decoded = &sync.Map{} // the output has much of what nodes read
	ended, err := taskrun.Invoke(ctx, g.adapter, pregel.Input{Value: run.Input}, options)
	runtime.ConcludeView(&view, ended, err)
	events.Complete(&view, ended.Questions)
	return resultOf[Out](runtime.Rest{View: view}, err, options.Decoded)
}

func (g *Graph[Out]) invokeNested(ctx context.Context, run runtime.Start) (Result[Out], error) {
	output, err := taskrun.InvokeNested(ctx, g.adapter, run.Input)
	if err != nil {
		return Result[Out]{}, err
	}
	return resultOf[Out](runtime.Rest{View: thread.View{Graph: g.Name(), Status: thread.StatusFinished, Output: output}}, nil, nil)
}

// Thread returns the thread of that id on a runtime. It begins with its first run. An id has at most 200 bytes.
func (g *Graph[Out]) Thread(rt Runtime, id string) *Thread[Out] {
	return &Thread[Out]{graph: g.adapter, runtime: rt.runtime(), id: id}
}

// ClearCache forgets what nodes [WithCache] returned, those of a subgraph node's subgraphs included; without nodes, all
// of the graph's. A run under way may store results again at once. A node that the graph does not have is [thread.ErrBadInput].
func (g *Graph[Out]) ClearCache(ctx context.Context, nodes ...string) error {
	known := map[string]bool{}
	for _, n := range g.adapter.Spec.Nodes {
		known[n.Name] = true
	}
	for _, n := range nodes {
		if !known[n] {
			return &thread.Error{Kind: thread.ErrBadInput, Graph: g.Name(), Node: n,
				Message: fmt.Sprintf("clear the cache of %q: graph %q has no such node%s", n, g.Name(), nearest.DidYouMean(n, known))}
		}
	}
	return g.adapter.ClearCache(ctx, nodes...)
}

// decodeOutput fills a result from the output channels, and checks that every one of them decodes.
func decodeOutput[Out any](graph string, values map[string]pregel.Held, decoded *sync.Map) (Out, error) {
	var out Out
	t := reflect.TypeFor[Out]()
	if !isState(t) {
		return decodeReturned[Out](graph, values)
	}
	sc, s := newScope(graph, ""), schemaOf(t)
	sc.decoded = decoded
	s.bind(&out, sc, values)
	s.load(&out)
	return out, sc.failure()
}

// The formats of [Draw].
const (
	DrawText    = "text"
	DrawMermaid = "mermaid"
	DrawDOT     = "dot"
)

// Draw returns a picture of a graph: text for a terminal, Mermaid for a web page, or DOT for Graphviz. Conditional
// edges are dashed (⇢ in text); those that declare no target lead to "any". Error handlers and breakpoints are shown.
// Ways that a node takes by a Command are not part of a Spec and not shown. An unknown format is [thread.ErrBadInput].
func Draw(spec *pregel.Spec, format string) (string, error) {
	switch format {
	case DrawText:
		return draw.Text(spec), nil
	case DrawMermaid:
		return draw.Mermaid(spec), nil
	case DrawDOT:
		return draw.DOT(spec), nil
	}
	return "", &thread.Error{Kind: thread.ErrBadInput, Graph: spec.Name,
		Message: fmt.Sprintf("unknown format %q: there are %s, %s and %s", format, DrawText, DrawMermaid, DrawDOT)}
}

// decodeReturned is what an entrypoint returned last, the zero value when it has not.
func decodeReturned[Out any](graph string, values map[string]pregel.Held) (Out, error) {
	var out Out
	raw := values[pregel.FunctionOutput].Value()
	if raw == nil {
		return out, nil
	}
	if err := jsonfit.Decode(raw, &out); err != nil {
		var none Out
		return none, &StateError{Graph: graph, Field: pregel.FunctionOutput, Type: jsonfit.TypeName(reflect.TypeFor[Out]()), Cause: err}
	}
	return out, nil
}
