package job

import "slices"

// Graph is a directed graph of ids; an edge leads from a vertex to one that depends on it. Vertices keep the order in which
// they were added, and every answer is in an order that follows from it.
type Graph struct {
	ids          []string
	at           map[string]int
	dependencies [][]string
	successors   map[string][]string
}

// Add puts a vertex into the graph, with what it depends on. Dependencies may be added later; those that never are, and
// repetitions, count for nothing. An id that is there already stays as it is, and Add returns false.
func (g *Graph) Add(id string, dependencies []string) bool {
	if g.at == nil {
		g.at, g.successors = map[string]int{}, map[string][]string{}
	}
	if _, there := g.at[id]; there {
		return false
	}
	g.at[id] = len(g.ids)
	g.ids = append(g.ids, id)
	unique := withoutRepetitions(dependencies)
	g.dependencies = append(g.dependencies, unique)
	for _, d := range unique {
		g.successors[d] = append(g.successors[d], id)
	}
	return true
}

func withoutRepetitions(ids []string) []string {
	if len(ids) < 2 {
		return ids
	}
	seen, unique := make(map[string]bool, len(ids)), make([]string, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id], unique = true, append(unique, id)
		}
	}
	return unique
}

// Has reports whether a vertex is in the graph.
func (g *Graph) Has(id string) bool {
	_, there := g.at[id]
	return there
}

// Predecessors are the vertices that one depends on directly, in the order of its dependencies.
func (g *Graph) Predecessors(id string) []string {
	at, there := g.at[id]
	if !there {
		return nil
	}
	return g.known(g.dependencies[at])
}

// Successors are the vertices that depend on one directly, in the order in which they were added.
func (g *Graph) Successors(id string) []string { return slices.Clone(g.successors[id]) }

// Roots are the vertices that depend on none, Tails those that none depends on, both in the order in which they were added.
func (g *Graph) Roots() []string {
	return g.where(func(id string) bool { return len(g.Predecessors(id)) == 0 })
}

// Tails: see [Graph.Roots].
func (g *Graph) Tails() []string {
	return g.where(func(id string) bool { return len(g.successors[id]) == 0 })
}

func (g *Graph) where(ok func(id string) bool) []string {
	var found []string
	for _, id := range g.ids {
		if ok(id) {
			found = append(found, id)
		}
	}
	return found
}

func (g *Graph) known(ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if g.Has(id) {
			out = append(out, id)
		}
	}
	return out
}

// Descendants are the vertices that depend on any of the given ones, directly or not, in the order in which they were
// added. A given one is among them only if it depends on another.
func (g *Graph) Descendants(of ...string) []string {
	reached, next := map[string]bool{}, slices.Clone(of)
	for len(next) > 0 {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		for _, s := range g.successors[id] {
			if !reached[s] {
				reached[s], next = true, append(next, s)
			}
		}
	}
	return g.where(func(id string) bool { return reached[id] })
}

// Topological are the vertices, each after all that it depends on; of several that may come next, the one that was added first
// does. Vertices on a cycle, and those that depend on one, are missing.
func (g *Graph) Topological() []string {
	waits := make([]int, len(g.ids))
	var next []int // ascending
	for i := range g.ids {
		if waits[i] = len(g.known(g.dependencies[i])); waits[i] == 0 {
			next = append(next, i)
		}
	}
	order := make([]string, 0, len(g.ids))
	for len(next) > 0 {
		id := g.ids[next[0]]
		next = next[1:]
		order = append(order, id)
		for _, s := range g.successors[id] {
			at := g.at[s]
			if waits[at]--; waits[at] == 0 {
				place, _ := slices.BinarySearch(next, at)
				next = slices.Insert(next, place, at)
			}
		}
	}
	return order
}

// Cycle are vertices each of which depends on the one before it, the first on the last; nil when there is no cycle.
func (g *Graph) Cycle() []string {
	done := map[string]bool{}
	for _, id := range g.Topological() {
		done[id] = true
	}
	at := slices.IndexFunc(g.ids, func(id string) bool { return !done[id] })
	if at < 0 {
		return nil
	}
	// Whatever is not done depends on something that is not: walking there, one vertex must come twice.
	var path []string
	for id := g.ids[at]; ; {
		if i := slices.Index(path, id); i >= 0 {
			cycle := path[i:]
			slices.Reverse(cycle)
			return cycle
		}
		path = append(path, id)
		before := g.Predecessors(id)
		id = before[slices.IndexFunc(before, func(p string) bool { return !done[p] })]
	}
}
