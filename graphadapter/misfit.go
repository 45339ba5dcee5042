package graphadapter

import (
	"fmt"
	"maps"
	"slices"

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
		return &UnservedError{Graph: g.Spec.Name, Field: wrong}
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

// CheckWrites refuses what a task has written when the graph as its run began has no such field, which this process has:
// the engine would drop it. The error is an [*UnservedError]: a worker of the run's version writes what the run has.
func (g *Graph) CheckWrites(began *pregel.Spec, task *pregel.Task, writes []pregel.Write) error {
	here, ok := g.Subgraph(task.Graph)
	for _, name := range task.Graph {
		if began = began.Subgraphs[name]; began == nil {
			return nil
		}
	}
	if !ok {
		return nil
	}
	for _, w := range writes {
		if has(began, w.Channel) || !has(here.Spec, w.Channel) {
			continue
		}
		return &UnservedError{Graph: here.Spec.Name, Node: task.Node,
			Field: fmt.Sprintf("field %q, which the node has written, is not in the run, and %s here", w.Channel, kindIn(here.Spec, w.Channel))}
	}
	return nil
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
