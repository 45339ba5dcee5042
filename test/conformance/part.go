package main

import (
	"slices"
	"strings"

	"superstep.dev/thread"
)

// part keeps a part of a thread's stream, if the action asked for its mode and graph.
func (r *recorder) part(p thread.Part) {
	if !slices.Contains(r.modes, string(p.Mode)) || len(p.Namespace) > 0 && !r.subgraphs {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(strings.Join(p.Namespace, "|"), nodesOf(p.Namespace), string(p.Mode), shown([]byte(p.Data)))
}

// streamModes are the modes that the action asked for.
func (r *recorder) streamModes() []thread.StreamMode {
	out := make([]thread.StreamMode, len(r.modes))
	for i, m := range r.modes {
		out[i] = thread.StreamMode(m)
	}
	return out
}

// nodesOf are the nodes that lead to a subgraph.
func nodesOf(namespace []string) []string {
	nodes := make([]string, len(namespace))
	for i, n := range namespace {
		_, path, _ := strings.Cut(n, "/")
		nodes[i], _, _ = strings.Cut(path, ":") // of a send, its number stands behind the node
	}
	return nodes
}
