package main

import (
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev/graphadapter/pregel"
	shape "superstep.dev/graphadapter/stream"
	"superstep.dev/test/conformance/trace"
)

// recorder keeps what one run streams, one stream for each run of a graph.
type recorder struct {
	program   *pregel.Program
	shaper    *shape.Shaper
	modes     []string
	subgraphs bool

	mu      sync.Mutex
	streams map[string]*stream // by namespace
	fault   error
}

// stream is what one run of a graph emitted.
type stream struct {
	path   []string
	chunks []chunk
}

// chunk is one [mode, chunk] pair of a stream.
type chunk struct {
	mode  string
	value any
}

// modesOf are the stream modes of a run action.
func modesOf(a *action) []string {
	if a.Modes == nil {
		return defaultModes
	}
	return a.Modes
}

// newRecorder returns the recorder of a run of that program.
func newRecorder(program *pregel.Program, a *action) *recorder {
	r := &recorder{program: program, modes: modesOf(a), subgraphs: a.Subgraphs, streams: map[string]*stream{"": {}}}
	var modes []shape.Mode
	for _, m := range r.modes {
		modes = append(modes, shape.Mode(m))
	}
	r.shaper = shape.New(a.thread(), modes, a.Subgraphs)
	r.shaper.Began(program, "")
	return r
}

// observe is the run's pregel.Observer.
func (r *recorder) observe(e pregel.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	chunks, err := r.shaper.Shape(e, time.Time{})
	if err != nil && r.fault == nil {
		r.fault = err
	}
	for _, c := range chunks {
		r.take(c.Namespace, c.Nodes, string(c.Mode), shown(c.Data))
	}
}

// take keeps a chunk as the results show it. There are some that they do not show; a run with no others is shown without
// any.
func (r *recorder) take(namespace string, path []string, mode string, value any) {
	if mode == string(shape.Reset) { // LangGraph does not say that a task is attempted again
		return
	}
	namespace = r.streamOf(namespace, path)
	s, known := r.streams[namespace]
	if !known {
		s = &stream{path: slices.Clone(path)}
		r.streams[namespace] = s
	}
	if value, ok := asRecorded(mode, value); ok {
		s.chunks = append(s.chunks, chunk{mode, value})
	}
}

// streamOf names the stream of a graph: a subgraph that remembers has one for all its runs, as it has one memory.
func (r *recorder) streamOf(namespace string, path []string) string {
	elements := strings.Split(namespace, "|")
	p := r.program
	for i, node := range path {
		sub, ok := subgraphOf(p, node)
		if !ok || i >= len(elements) {
			break
		}
		if p = sub; p.Spec.Memory == pregel.MemoryThread {
			elements[i] = node
		}
	}
	return strings.Join(elements, "|")
}

// subgraphOf is the subgraph of a node.
func subgraphOf(p *pregel.Program, node string) (*pregel.Program, bool) {
	at := slices.IndexFunc(p.Spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == node })
	if at < 0 {
		return nil, false
	}
	return p.Subgraph([]string{p.Spec.Nodes[at].Subgraph})
}

// interruptKey marks the questions of a chunk.
const interruptKey = "__interrupt__"

// asRecorded is a chunk without what engines choose for themselves (rules 1 to 3 of the format's normalisation).
func asRecorded(mode string, value any) (any, bool) {
	fields, _ := value.(map[string]any)
	asked, asks := fields[interruptKey].([]any)
	switch {
	case mode == modeValues && asks:
		return nil, false
	case mode == modeUpdates && asks:
		return map[string]any{interruptKey: askedValues(asked)}, true
	case mode != modeTasks:
		return value, true
	}
	result, ended := fields["result"]
	if !ended {
		return map[string]any{"name": fields["name"], "input": fields["input"]}, true
	}
	asked, _ = fields["interrupts"].([]any)
	return map[string]any{"name": fields["name"], "result": result, "interrupts": askedValues(asked)}, fields["error"] == nil
}

// askedValues are the values of interrupts, in a fixed order: tasks ask in any.
func askedValues(asked []any) []any {
	out := make([]any, 0, len(asked))
	for _, q := range asked {
		out = append(out, q.(map[string]any)["value"])
	}
	return trace.Sort(out)
}

// questions are the values of questions, in a fixed order.
func questions(asked []pregel.Question) []any {
	out := make([]any, 0, len(asked))
	for _, q := range asked {
		out = append(out, shown(q.Value))
	}
	return trace.Sort(out)
}

// object is a map of the engine's values as a JSON object.
func object[M ~map[string]pregel.Value](values M) map[string]any {
	out := make(map[string]any, len(values))
	for name, v := range values {
		out[name] = shown(v)
	}
	return out
}

// shown is a value of the engine. One that is no JSON cannot equal anything that a case expects, and says so.
func shown(raw pregel.Value) any {
	v, err := trace.Decode(raw)
	if err != nil {
		return map[string]any{"no JSON": string(raw)}
	}
	return v
}
