package graphadapter

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
