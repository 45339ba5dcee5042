package graphtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"encoding/json"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// The kinds of a stop.
const (
	stopBefore    = "before"     // a breakpoint
	stopAfter     = "after"      // a breakpoint
	stopAsksFirst = "asks_first" // a question before the node's own work
	stopAsksLast  = "asks_last"  // a question after it
	stopApproves  = "approval"   // an approval before the node's own work
)

// stop is an interruption: of a node, named with the nodes of the subgraphs around it. The zero value is none.
type stop struct {
	kind string
	path string
}

// String is the stop's part of a test's name.
func (s stop) String() string {
	if s.kind == "" {
		return "uninterrupted"
	}
	return pointName(s.path) + "/" + s.kind
}

// seen reports whether the run's status tells that it was interrupted. A breakpoint in a subgraph is passed together with
// a question that is open beside it: the run waits, and the answer lets all of it go on.
func (s stop) seen() bool {
	breakpoint := s.kind == stopBefore || s.kind == stopAfter
	return s.kind != "" && !(breakpoint && strings.Contains(s.path, "/"))
}

// watched is a graph that is interrupted at one place, and whose effects reach an outside of its own.
type watched struct {
	in      *interrupts
	stop    stop
	graph   *superstep.Graph[any]
	outside *outside

	mu    sync.Mutex
	ran   map[string]bool // nodes with functions
	calls map[string]int  // of effects, by their keys
	wrote map[string]int  // by effect and parameters
	// receipts are what the writes got, by effect and parameters, in their order.
	receipts map[string][]pregel.Value
}

func (in *interrupts) watch(s stop) *watched {
	w := &watched{in: in, stop: s, outside: newOutside(&in.settings, false), ran: map[string]bool{}, calls: map[string]int{},
		wrote: map[string]int{}, receipts: map[string][]pregel.Value{}}
	w.graph = superstep.GraphOf[any](w.copy(in.graph, ""))
	return w
}

// copy is a graph with the interruption, if that is its or a subgraph's. within leads to its nodes.
func (w *watched) copy(g *graphadapter.Graph, within string) *graphadapter.Graph {
	spec := *g.Spec
	out := &graphadapter.Graph{Spec: &spec, Nodes: map[string]graphadapter.Node{}, Effects: map[string]graphadapter.Effect{},
		Reducers: g.Reducers, Subgraphs: map[string]*graphadapter.Graph{}, CheckInput: g.CheckInput, CheckUpdate: g.CheckUpdate}
	for name, n := range g.Nodes {
		out.Nodes[name] = w.node(within+name, n)
	}
	for name, e := range g.Effects {
		out.Effects[name] = w.effect(e)
	}
	spec.Subgraphs = map[string]*pregel.Spec{}
	for name, sub := range g.Subgraphs {
		out.Subgraphs[name] = w.copy(sub, within+name+"/")
		spec.Subgraphs[name] = out.Subgraphs[name].Spec
	}
	for _, n := range spec.Nodes {
		switch w.stop {
		case stop{stopBefore, within + n.Name}:
			spec.InterruptBefore = append(slices.Clone(spec.InterruptBefore), n.Name)
		case stop{stopAfter, within + n.Name}:
			spec.InterruptAfter = append(slices.Clone(spec.InterruptAfter), n.Name)
		}
	}
	return out
}

// node is a node that notes that it ran, and asks if it is to.
func (w *watched) node(path string, n graphadapter.Node) graphadapter.Node {
	run := n.Run
	if run == nil {
		return n // a subgraph's node
	}
	n.Cache = nil
	n.Run = func(ctx context.Context, input graphadapter.Input) (pregel.Command, error) {
		w.mu.Lock()
		w.ran[path] = true
		w.mu.Unlock()
		if err := w.ask(ctx, stop{stopAsksFirst, path}); err != nil {
			return pregel.Command{}, err
		}
		if err := w.approve(ctx, path); err != nil {
			return pregel.Command{}, err
		}
		command, err := run(ctx, input)
		if err == nil {
			err = w.ask(ctx, stop{stopAsksLast, path})
		}
		return command, err
	}
	return n
}

// interruption is the question of a stop.
const interruption = "graphtest: an interruption"

// ask asks where the graph is to be interrupted. Its key keeps it apart from the node's own questions, whose order stays.
func (w *watched) ask(ctx context.Context, here stop) error {
	if w.stop != here {
		return nil
	}
	_, err := superstep.Interrupt[bool](ctx, interruption, superstep.WithKey(interruption))
	return err
}

// stops are where a run can be interrupted that did what this one did: not where it stops anyway.
func (w *watched) stops() []stop {
	var out []stop
	for _, path := range slices.Sorted(maps.Keys(w.graph.Adapter().Nodes)) {
		out = append(out, w.stopsAt(w.graph.Adapter(), "", path)...)
	}
	return out
}

func (w *watched) stopsAt(g *graphadapter.Graph, within, node string) (out []stop) {
	path := within + node
	sub, nested := g.Subgraphs[node]
	ran := slices.ContainsFunc(slices.Collect(maps.Keys(w.ran)), func(p string) bool {
		return p == path || nested && strings.HasPrefix(p, path+"/")
	})
	if !ran {
		return nil
	}
	standsAt := func(breakpoints []string) bool {
		return slices.Contains(breakpoints, node) || slices.Contains(breakpoints, superstep.All)
	}
	if !standsAt(g.Spec.InterruptBefore) {
		out = append(out, stop{stopBefore, path})
	}
	if !standsAt(g.Spec.InterruptAfter) {
		out = append(out, stop{stopAfter, path})
	}
	if !nested {
		return append(out, stop{stopAsksFirst, path}, stop{stopAsksLast, path}, stop{stopApproves, path})
	}
	for _, inner := range slices.Sorted(maps.Keys(sub.Nodes)) {
		out = append(out, w.stopsAt(sub, path+"/", inner)...)
	}
	return out
}

// effect is an effect that writes to the run's own outside.
func (w *watched) effect(e graphadapter.Effect) graphadapter.Effect {
	if standIn, ok := w.in.settings.effects[e.Name]; ok && w.in.settings.stubbed[e.Name] {
		e.Do = standIn.Do
	}
	do, name, target := e.Do, e.Name, e.Target
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		w.mu.Lock()
		w.calls[name+" "+key]++
		w.mu.Unlock()
		return w.outside.call(ctx, name, target, func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
			return w.receipt(ctx, name, do, key, params)
		}, key, params)
	}
	if e.Lookup != nil {
		e.Lookup = func(_ context.Context, key string, _ pregel.Value) (graphadapter.Finding, error) {
			return w.outside.find(name, key), nil
		}
	}
	return e
}

// receipt is the receipt of a write: the one that the same write got in the run that nobody interrupted.
func (w *watched) receipt(ctx context.Context, effect string, do func(context.Context, string, pregel.Value) (pregel.Value, error),
	key string, params pregel.Value) (pregel.Value, error) {
	write := effect + " " + canonical(params)
	w.mu.Lock()
	nth := w.wrote[write]
	w.wrote[write]++
	w.mu.Unlock()
	if w.in.want != nil && nth < len(w.in.want.receipts[write]) {
		return w.in.want.receipts[write][nth], nil
	}
	receipt, err := do(ctx, key, params)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.receipts[write] = append(w.receipts[write], receipt)
	}
	return receipt, err
}

// twice are the calls that were made again under their key.
func (w *watched) twice() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range slices.Sorted(maps.Keys(w.calls)) {
		if n := w.calls[call]; n > 1 {
			effect, key, _ := strings.Cut(call, " ")
			return fmt.Errorf("the effect %q was called %d times under its key %s", effect, n, shortKey(key))
		}
	}
	return nil
}

// approve asks for an approval where the graph is to be interrupted by one.
func (w *watched) approve(ctx context.Context, path string) error {
	if w.stop != (stop{stopApproves, path}) {
		return nil
	}
	params, err := json.Marshal(map[string]string{"node": path})
	if err != nil {
		return err
	}
	d, err := superstep.Approve(ctx, approval.Action{Tool: interruption, Summary: interruption, Params: params},
		superstep.WithKey(interruption))
	if err == nil && d.Verdict != approval.VerdictApprove {
		err = fmt.Errorf("the interruption was answered with %s", d.Verdict)
	}
	return err
}

// interrupts are the runs of one graph on one input.
type interrupts struct {
	graph    *graphadapter.Graph
	input    json.RawMessage
	settings settings
	want     *course // of the run that nobody interrupted; nil until it is known
	stops    []stop
}

// course is how a run went.
type course struct {
	ending
	// interrupted counts the interruptions: breakpoints, and questions that were not the graph's own.
	interrupted int
	// given are the answers to the graph's own questions, by what asked, in their order.
	given    map[string][]json.RawMessage
	answered int
	// receipts are what the writes got, by effect and parameters, in their order.
	receipts map[string][]pregel.Value
}
