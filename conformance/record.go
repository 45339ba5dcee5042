package main

import (
	"slices"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// recorder is told what happens in one run and keeps it as stream chunks, one stream for each run of a graph.
type recorder struct {
	root      *built
	modes     []string
	subgraphs bool

	mu      sync.Mutex
	streams map[string]*stream // by namespace
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

func newRecorder(root *built, a *action) *recorder {
	modes := a.Modes
	if modes == nil {
		modes = defaultModes
	}
	return &recorder{root: root, modes: modes, subgraphs: a.Subgraphs, streams: map[string]*stream{"": {}}}
}

// observe is the run's pregel.Observer.
func (r *recorder) observe(e pregel.Event) {
	if e.Namespace != "" && !r.subgraphs {
		return
	}
	c, ok := r.chunk(e)
	if !ok || !slices.Contains(r.modes, c.mode) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.streams[e.Namespace]
	if !ok {
		s = &stream{path: slices.Clone(e.Nodes)}
		r.streams[e.Namespace] = s
	}
	s.chunks = append(s.chunks, c)
}

// chunk is an event as LangGraph streams it; there are events that it does not stream.
func (r *recorder) chunk(e pregel.Event) (chunk, bool) {
	switch e.Kind {
	case pregel.EventValues:
		return chunk{modeValues, object(e.Values)}, true
	case pregel.EventUpdate:
		return chunk{modeUpdates, r.update(e)}, true
	case pregel.EventInterrupt:
		return chunk{modeUpdates, map[string]any{interruptKey: questions(e.Questions)}}, true
	case pregel.EventCustom:
		return chunk{modeCustom, shown(e.Value)}, true
	case pregel.EventTaskStart:
		input := any(object(e.Task.State))
		if e.Task.IsSend() {
			input = shown(e.Task.Arg)
		}
		return chunk{modeTasks, map[string]any{"name": e.Task.Node, "input": input}}, true
	case pregel.EventTaskEnd:
		if e.Error != nil {
			return chunk{}, false
		}
		result := map[string]any{}
		if graph := r.graph(e.Nodes); graph != nil {
			result = written(e.Writes, func(channel string) bool { return graph.kinds[channel] != "" })
		}
		return chunk{modeTasks, map[string]any{
			"name": e.Task.Node, "result": result, "interrupts": questions(e.Questions),
		}}, true
	}
	return chunk{}, false
}

// interruptKey marks the questions of an updates chunk.
const interruptKey = "__interrupt__"

// update is {"node": {channel: value}}, with null for a node that wrote nothing that callers see.
func (r *recorder) update(e pregel.Event) map[string]any {
	var update any
	if graph := r.graph(e.Nodes); graph != nil {
		if w := written(e.Writes, func(channel string) bool { return graph.output[channel] }); len(w) > 0 {
			update = w
		}
	}
	out := map[string]any{e.Task.Node: update}
	if e.Cached {
		out["__metadata__"] = map[string]any{"cached": true}
	}
	return out
}

// graph is the graph that runs in the nodes of that path, nil if the case has none there.
func (r *recorder) graph(path []string) *built {
	g := r.root
	for _, node := range path {
		if g = g.nodes[node]; g == nil {
			return nil
		}
	}
	return g
}

// written is the writes to the channels that are seen, an overwrite as it was written.
func written(writes []pregel.Write, seen func(channel string) bool) map[string]any {
	out := map[string]any{}
	for _, w := range writes {
		if !seen(w.Channel) {
			continue
		}
		out[w.Channel] = shown(w.Value)
		if w.Overwrite {
			out[w.Channel] = map[string]any{overwriteKey: shown(w.Value)}
		}
	}
	return out
}

// questions are the values of questions, in a fixed order: tasks ask in any.
func questions(asked []pregel.Question) []any {
	out := make([]any, 0, len(asked))
	for _, q := range asked {
		out = append(out, shown(q.Value))
	}
	return sortCanonical(out)
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
	v, err := decodeValue(raw)
	if err != nil {
		return map[string]any{"no JSON": string(raw)}
	}
	return v
}
