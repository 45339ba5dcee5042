package graphadapter

import (
	"fmt"
	"maps"
	"slices"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// misfit says which field of a graph this process has in another kind than the run, whose graph began as began: a node
// would read and write something else than it means. It is empty when there is none; a field that only one of both has is none.
func misfit(began, here *pregel.Spec) string {
	for _, there := range began.Channels {
		at := slices.IndexFunc(here.Channels, func(c pregel.ChannelSpec) bool { return c.Name == there.Name })
		if at < 0 {
			continue
		}
		if was, is := fieldKind(there), fieldKind(here.Channels[at]); was != is {
			return fmt.Sprintf("field %q is %s in the run and %s here", there.Name, was, is)
		}
	}
	return ""
}

// fieldKind is how writes to a channel come together, in words.
func fieldKind(c pregel.ChannelSpec) string {
	kind := string(c.Kind)
	switch {
	case c.Reducer != "":
		kind += " with " + c.Reducer
	case c.Accumulate:
		kind += " that accumulates"
	case c.Unguarded:
		kind += " for several writes"
	}
	return kind
}

// CheckFields refuses to run tasks of a graph whose run began as began, a root graph, when this process has a field of it
// or of one of its subgraphs in another kind, reducers included: an [*UnservedError].
func (g *Graph) CheckFields(began *pregel.Spec) error {
	if wrong := misfit(began, g.Spec); wrong != "" {
		return &UnservedError{Graph: g.Spec.Name, Differs: wrong}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Subgraphs)) {
		if inner, ok := began.Subgraphs[name]; ok && inner != nil {
			if err := g.Subgraphs[name].CheckFields(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckOutcome refuses what a task came to when the graph as its run began has no such field or node, which this process has:
// the engine would drop the write or the way, and a run with no other way would end as if it had finished. The error is an
// [*UnservedError]: a worker of the run's version comes to what the run has.
func (g *Graph) CheckOutcome(began *pregel.Spec, task *pregel.Task, o *pregel.Outcome) error {
	if err := g.checkCommand(began, task, task.Graph, &o.Command); err != nil {
		return err
	}
	for _, way := range o.Routes {
		if !way.Send && !declared(task.Branches, way.Node) {
			return strayWay(g.NameOf(task), task, way.Node)
		}
	}
	return g.checkWays(began, task, task.Graph, o.Routes)
}

// declared reports whether one of the branches, as the run has them, may lead to a node.
func declared(branches []pregel.Branch, node string) bool {
	return slices.ContainsFunc(branches, func(b pregel.Branch) bool {
		return b.Labels != nil || b.Targets == nil || slices.Contains(b.Targets, node)
	})
}

func strayWay(graph string, task *pregel.Task, to string) error {
	return &UnservedError{Graph: graph, Node: task.Node, Differs: fmt.Sprintf("the way to node %q, which it took, is not in the run", to)}
}

// CheckCalls refuses a task with an effect that this process does not have, of which an execution before may have made a call: nobody here
// would look it up, and the node might do the same under another name. The error is an [*UnservedError].
func (g *Graph) CheckCalls(task *pregel.Task, recorded []ledger.Entry) error {
	graph, ok := g.Subgraph(task.Graph)
	if !ok {
		return nil
	}
	for _, e := range recorded {
		open := e.State == ledger.StateIntent || e.State == ledger.StateUnknown
		if _, known := graph.Effects[e.Name]; e.Kind != ledger.KindEffect || e.Within || !open || known {
			continue
		}
		return &UnservedError{Graph: graph.Spec.Name, Node: task.Node, Missing: fmt.Sprintf("effect as %q, which may have been made", e.Name)}
	}
	return nil
}

// checkCommand refuses a command to the graph of that path.
func (g *Graph) checkCommand(began *pregel.Spec, task *pregel.Task, path []string, c *pregel.Command) error {
	if c.Parent != nil && len(path) > 0 {
		return g.checkCommand(began, task, path[:len(path)-1], c.Parent)
	}
	here, there := g.versions(began, path)
	if there == nil {
		return nil
	}
	for _, w := range c.Update {
		if has(there, w.Channel) || !has(here, w.Channel) {
			continue
		}
		return &UnservedError{Graph: here.Name, Node: task.Node,
			Differs: fmt.Sprintf("field %q, which the node has written, is not in the run, and %s here", w.Channel, kindIn(here, w.Channel))}
	}
	return g.checkWays(began, task, path, c.Goto)
}

// checkWays refuses targets within the graph of that path.
func (g *Graph) checkWays(began *pregel.Spec, task *pregel.Task, path []string, ways []pregel.Target) error {
	if len(ways) == 0 {
		return nil
	}
	here, there := g.versions(began, path)
	if there == nil {
		return nil
	}
	for _, way := range ways {
		if hasNode(there, way.Node) || !hasNode(here, way.Node) {
			continue
		}
		return strayWay(here.Name, task, way.Node)
	}
	return nil
}

// versions are the graph of that path as this process has it, and as the run began with it; nil where one of both has none.
func (g *Graph) versions(began *pregel.Spec, path []string) (here, there *pregel.Spec) {
	sub, ok := g.Subgraph(path)
	for _, name := range path {
		if began == nil {
			return nil, nil
		}
		began = began.Subgraphs[name]
	}
	if !ok || began == nil {
		return nil, nil
	}
	return sub.Spec, began
}

func hasNode(spec *pregel.Spec, node string) bool {
	return slices.ContainsFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == node })
}

func has(spec *pregel.Spec, channel string) bool { return kindIn(spec, channel) != "" }

func kindIn(spec *pregel.Spec, channel string) string {
	for _, c := range spec.Channels {
		if c.Name == channel {
			return fieldKind(c)
		}
	}
	return ""
}

// CheckUpdates refuses updates of the state from outside whose values do not fit this graph, or the subgraph of the nodes
// of that path, by its CheckUpdate and CheckInput. What it does not know, such as a path that leads nowhere, it lets pass:
// the engine says more about that.
func (g *Graph) CheckUpdates(path []string, supersteps [][]StateUpdate) error {
	for _, node := range path {
		if g = g.nodeGraph(node); g == nil {
			return nil
		}
	}
	for _, updates := range supersteps {
		for _, u := range updates {
			if err := g.checkUpdate(u); err != nil {
				return err
			}
			for _, copied := range u.Copied {
				if err := g.checkUpdate(copied); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nodeGraph returns the graph that a node runs, nil when it runs none.
func (g *Graph) nodeGraph(node string) *Graph {
	for _, n := range g.Spec.Nodes {
		if n.Name == node {
			return g.Subgraphs[n.Subgraph]
		}
	}
	return nil
}

func (g *Graph) checkUpdate(u StateUpdate) error {
	if u.Input != nil && g.CheckInput != nil {
		if err := g.CheckInput(u.Input); err != nil {
			return err
		}
	}
	if len(u.Values) > 0 && g.CheckUpdate != nil {
		return g.CheckUpdate(u.Values)
	}
	return nil
}
