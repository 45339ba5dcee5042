package main

import (
	"encoding/json"

	"superstep.dev/test/conformance/trace"
)

// normaliser makes what an engine answered comparable with what was recorded: it hides the ids that an engine chose
// and sorts what happens in any order.
type normaliser struct {
	// given are the message ids that stand in the case; any other is shown as "auto".
	given map[string]bool
	// messages says that the case has a messages channel. Without one nothing is taken for a message.
	messages bool
}

// autoID stands for a message id that was not given in the case.
const autoID = "auto"

// newNormaliser reads off a case which ids it gives. text is the case as it stands in its file.
func newNormaliser(c *caseDoc, text []byte) (*normaliser, error) {
	n := &normaliser{given: map[string]bool{}}
	for _, g := range append([]*graphDoc{c.Graph}, values(c.Graphs)...) {
		for _, channel := range g.Channels {
			n.messages = n.messages || channel.Kind == "messages"
		}
	}
	if !n.messages {
		return n, nil
	}
	var parts struct{ Graph, Graphs, Actions json.RawMessage }
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	for _, part := range []json.RawMessage{parts.Graph, parts.Graphs, parts.Actions} {
		if part == nil {
			continue
		}
		v, err := trace.Decode(part)
		if err != nil {
			return nil, err
		}
		n.collect(v)
	}
	return n, nil
}

func values[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range trace.Keys(m) {
		out = append(out, m[k])
	}
	return out
}

// collect adds every id of v to the given ones.
func (n *normaliser) collect(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n.collect(item)
		}
	case map[string]any:
		if id, ok := v["id"].(string); ok {
			n.given[id] = true
		}
		for _, item := range v {
			n.collect(item)
		}
	}
}

// value is v with the ids of its messages hidden. v itself stays as it is.
func (n *normaliser) value(v any) any {
	if !n.messages {
		return v
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.value(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = n.value(v[k])
		}
		if id, _ := v["id"].(string); isMessage(v) && !n.given[id] {
			out["id"] = autoID
		}
		return out
	}
	return v
}

func isMessage(v map[string]any) bool {
	role, _ := v["role"].(string)
	_, content := v["content"]
	return content && (role == "user" || role == "assistant" || role == "system")
}

// stream is a stream as a result shows it: between two values chunks the others are sorted, because the tasks of a
// superstep finish in any order.
func (n *normaliser) stream(chunks []chunk) []any {
	out := []any{}
	from := 0
	for _, c := range chunks {
		out = append(out, []any{c.mode, n.value(c.value)})
		if c.mode == modeValues {
			trace.Sort(out[from : len(out)-1])
			from = len(out)
		}
	}
	trace.Sort(out[from:])
	return out
}

// substreams are the streams of subgraphs, [path, stream], sorted.
func (n *normaliser) substreams(streams map[string]*stream) []any {
	out := []any{}
	for namespace, s := range streams {
		if namespace == "" {
			continue
		}
		path := make([]any, len(s.path))
		for i := range s.path {
			path[i] = s.path[i]
		}
		out = append(out, []any{path, n.stream(s.chunks)})
	}
	return trace.Sort(out)
}
