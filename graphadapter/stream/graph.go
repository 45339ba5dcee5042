package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// What LangGraph writes in a task's triggers and path.
const (
	pulled        = "__pregel_pull"
	pushed        = "__pregel_push"
	triggerPrefix = "branch:to:"
	joinPrefix    = "join:"
)

// graph is what the chunks of one graph need to know of it.
type graph struct {
	program  *pregel.Program
	spec     *pregel.Spec
	nodePath []string
	channels map[string]bool
	outputs  map[string]bool
	messages map[string]bool // the channels that hold messages
	nodes    map[string]*pregel.NodeSpec
	triggers map[string][]string
}

// graphOf is the graph of a namespace, "superstep/path|superstep/path". A path is a node, or a node and the number of its
// Send.
func (s *Shaper) graphOf(namespace string) *graph {
	if g, ok := s.graphs[namespace]; ok {
		return g
	}
	cut := strings.LastIndexByte(namespace, '|')
	outer := s.graphOf(namespace[:max(cut, 0)])
	_, node, _ := strings.Cut(namespace[cut+1:], "/")
	if outer.nodes[node] == nil {
		node = node[:max(strings.LastIndexByte(node, ':'), 0)]
	}
	program, _ := outer.program.Subgraph([]string{outer.nodes[node].Subgraph})
	g := newGraph(program, append(slices.Clone(outer.nodePath), node))
	s.graphs[namespace] = g
	return g
}

func newGraph(program *pregel.Program, nodePath []string) *graph {
	spec := program.Spec
	g := &graph{program: program, spec: spec, nodePath: nodePath, channels: map[string]bool{}, outputs: map[string]bool{}, messages: map[string]bool{},
		nodes: map[string]*pregel.NodeSpec{}, triggers: map[string][]string{}}
	for _, c := range spec.Channels {
		g.channels[c.Name] = true
		g.outputs[c.Name] = spec.Output == nil || slices.Contains(spec.Output, c.Name)
		g.messages[c.Name] = strings.HasPrefix(c.Reducer, "messages/")
	}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		g.nodes[n.Name] = n
		g.triggers[n.Name] = []string{triggerPrefix + n.Name}
	}
	for _, j := range spec.Joins {
		g.triggers[j.To] = append(g.triggers[j.To], joinPrefix+strings.Join(j.From, "+")+":"+j.To)
	}
	for _, triggers := range g.triggers {
		slices.Sort(triggers)
	}
	return g
}

// triggersOf are the channels that can make a task run.
func (g *graph) triggersOf(t *pregel.Task) []string {
	if t.IsSend() || t.Failure != nil {
		return []string{pushed}
	}
	return g.triggers[t.Node]
}

// pathOf is a task's path as LangGraph writes it.
func pathOf(t *pregel.Task) []any {
	if !t.IsSend() {
		return []any{pulled, t.Node}
	}
	at, _ := strconv.Atoi(t.Path[strings.LastIndexByte(t.Path, ':')+1:])
	return []any{pushed, at, false}
}

// inputOf is what a task's node is given. A task with branches carries more state than its node reads.
func (g *graph) inputOf(t *pregel.Task) any {
	if t.IsSend() {
		return t.Arg
	}
	n := g.nodes[t.Node]
	if n == nil || n.Reads == nil {
		return t.State
	}
	read := make(map[string]pregel.Held, len(n.Reads))
	for _, channel := range n.Reads {
		if v, ok := t.State[channel]; ok {
			read[channel] = v
		}
	}
	return read
}

// encode writes a payload. Its readers are programs and terminals, never web pages.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("a streamed value is not JSON: %w", err)
	}
	return unescaped(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// unescaped writes <, > and & as they are: values that were stored have them escaped, others do not.
func unescaped(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u00`)) {
		return text
	}
	out := text[:0]
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		switch rest := string(text[i:min(i+6, len(text))]); strings.ToLower(rest) {
		case `\u003c`:
			out, i = append(out, '<'), i+5
		case `\u003e`:
			out, i = append(out, '>'), i+5
		case `\u0026`:
			out, i = append(out, '&'), i+5
		default:
			out, i = append(out, text[i], text[i+1]), i+1
		}
	}
	return out
}
