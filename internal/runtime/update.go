package runtime

import (
	"fmt"

	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/nearest"
	"superstep.dev/thread"
)

// UpdatedSpec returns the graph that a request updates.
func UpdatedSpec(spec *pregel.Spec, r thread.UpdateRequest) (*pregel.Spec, error) {
	for _, node := range r.Subgraph {
		sub, ok := NodeSubgraph(spec, node)
		if !ok {
			return nil, &thread.Error{Kind: thread.ErrNotFound, Graph: r.Graph, Thread: r.Thread, Node: node,
				Message: fmt.Sprintf("node %q of graph %q is no subgraph", node, spec.Name)}
		}
		spec = sub
	}
	return spec, nil
}

// NodeSubgraph returns the graph that a node runs.
func NodeSubgraph(spec *pregel.Spec, node string) (*pregel.Spec, bool) {
	for _, n := range spec.Nodes {
		if n.Name == node {
			sub, ok := spec.Subgraphs[n.Subgraph]
			return sub, ok
		}
	}
	return nil, false
}

// CheckUpdates refuses updates that no graph of that spec could take.
func CheckUpdates(spec *pregel.Spec, r thread.UpdateRequest) error {
	if _, err := UpdatedSpec(spec, r); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: fmt.Sprintf(format, args...)}
	}
	if len(r.Updates) == 0 {
		return refuse("there is no update")
	}
	for _, step := range r.Updates {
		if len(step) == 0 {
			return refuse("a superstep has no update")
		}
	}
	return nil
}

// NamedWrites are the writes of a JSON object of channels. A field that the graph does not have is refused here, where
// people give values by name; the engine ignores it, as LangGraph does.
func NamedWrites(spec *pregel.Spec, values pregel.Value) ([]pregel.Write, error) {
	writes, err := past.WritesOf(spec, values)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, ch := range spec.Channels {
		known[ch.Name] = true
	}
	for _, w := range writes {
		if !known[w.Channel] {
			return nil, fmt.Errorf("unknown field %q%s", w.Channel, nearest.DidYouMean(w.Channel, known))
		}
	}
	return writes, nil
}
