package graphadapter

import (
	"fmt"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// UnservedError says that this process does not have a function that the task needs. It is no failure of the node:
// nothing ran, and a worker that has it can run the task.
type UnservedError struct {
	// Graph is the graph's name, or the missing subgraph's path; Node is the node.
	Graph, Node string
	// Missing says what is not there: "subgraph", "node", "error handler", "branch 1".
	Missing string
	// Differs says which field of the state, or which way, is another one here than in the run; "" when something is Missing.
	Differs string
}

func (e *UnservedError) Error() string {
	if e.Differs != "" {
		where := ""
		if e.Node != "" {
			where = fmt.Sprintf("node %q of ", e.Node)
		}
		return fmt.Sprintf("this worker cannot run %sgraph %q as the run began with it: %s: run a worker built with the version of the "+
			"graph that the run was started with", where, e.Graph, e.Differs)
	}
	return fmt.Sprintf("this worker does not serve node %q of graph %q (it has no such %s): run a worker built with "+
		"the version of the graph that the run was started with", e.Node, e.Graph, e.Missing)
}

// Serve finds the functions of a task: its graph, its node and all its branches, before anything runs.
func (g *Graph) Serve(task *pregel.Task) (*Graph, Node, error) {
	graph, node, err := g.declared(task)
	switch {
	case err != nil:
		return nil, Node{}, err
	case task.Failure != nil:
		if node.Handle == nil {
			return nil, Node{}, &UnservedError{Graph: graph.Spec.Name, Node: task.Node, Missing: "error handler"}
		}
		return graph, node, nil // its branches are none: a handler says itself where to go
	case node.Run == nil && !task.RouteOnly:
		return nil, Node{}, &UnservedError{Graph: graph.Spec.Name, Node: task.Node, Missing: "node"}
	}
	for _, b := range task.Branches {
		source, ok := graph.Nodes[b.From]
		if !ok || b.Ordinal < 0 || b.Ordinal >= len(source.Branches) {
			return nil, Node{}, &UnservedError{
				Graph: graph.Spec.Name, Node: b.From, Missing: fmt.Sprintf("branch %d", b.Ordinal),
			}
		}
	}
	return graph, node, nil
}

// declared finds a task's graph and node.
func (g *Graph) declared(task *pregel.Task) (*Graph, Node, error) {
	graph := g
	for i, name := range task.Graph {
		sub, ok := graph.Subgraphs[name]
		if !ok {
			path := append([]string{g.Spec.Name}, task.Graph[:i+1]...)
			return nil, Node{}, &UnservedError{Graph: strings.Join(path, "/"), Node: task.Node, Missing: "subgraph"}
		}
		graph = sub
	}
	node, ok := graph.Nodes[task.Node]
	if !ok {
		return nil, Node{}, &UnservedError{Graph: graph.Spec.Name, Node: task.Node, Missing: "node"}
	}
	return graph, node, nil
}

// RetryPolicies returns the retry policies of the task's node, or an [*UnservedError] when this process does not have
// the node.
func (g *Graph) RetryPolicies(task *pregel.Task) ([]RetryPolicy, error) {
	_, node, err := g.declared(task)
	return node.Retry, err
}

// NodeSpec returns the declaration of a node.
func (g *Graph) NodeSpec(name string) (*pregel.NodeSpec, bool) {
	for i := range g.Spec.Nodes {
		if g.Spec.Nodes[i].Name == name {
			return &g.Spec.Nodes[i], true
		}
	}
	return nil, false
}
