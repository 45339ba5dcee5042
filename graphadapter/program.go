package graphadapter

import (
	"superstep.dev/graphadapter/pregel"
)

// Program returns the graph's compiled Spec. It is compiled once; the error is that of pregel.Compile.
func (g *Graph) Program() (*pregel.Program, error) {
	g.once.Do(func() { g.program, g.programErr = pregel.Compile(g.Spec, g.AllReducers()) })
	return g.program, g.programErr
}

// AllReducers returns the custom reducers of the graph and its subgraphs by name. A name stands for one behaviour
// everywhere, so where two graphs register the same name either one will do.
func (g *Graph) AllReducers() map[string]pregel.Reducer {
	all := map[string]pregel.Reducer{}
	for name, reducer := range g.Reducers {
		all[name] = reducer
	}
	for _, sub := range g.Subgraphs {
		for name, reducer := range sub.AllReducers() {
			all[name] = reducer
		}
	}
	return all
}

// Subgraph returns the graph of a task's path of subgraph names.
func (g *Graph) Subgraph(path []string) (*Graph, bool) {
	for _, name := range path {
		sub, ok := g.Subgraphs[name]
		if !ok {
			return nil, false
		}
		g = sub
	}
	return g, true
}
