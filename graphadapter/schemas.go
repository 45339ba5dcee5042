package graphadapter

import (
	"superstep.dev/graphadapter/pregel"
)

// Schemas are JSON schemas of what goes into a graph and comes out of it, for people and programs that only know its name.
type Schemas struct {
	// Input and Output are what callers give and get, State all channels. Of a graph whose types are not known they are nil.
	Input  pregel.Value `json:"input,omitempty"`
	Output pregel.Value `json:"output,omitempty"`
	State  pregel.Value `json:"state,omitempty"`
	// Context is what a run is given beside its input; nil when the graph does not say.
	Context pregel.Value `json:"context,omitempty"`
	// Subgraphs are those of the nodes that run a graph, by the node's name.
	Subgraphs map[string]Schemas `json:"subgraphs,omitempty"`
}

// AllSchemas returns the schemas of a graph and of those nested in it.
func (g *Graph) AllSchemas() Schemas {
	var s Schemas
	if g.Schemas != nil {
		s = g.Schemas()
	}
	for name, sub := range g.Subgraphs {
		if s.Subgraphs == nil {
			s.Subgraphs = map[string]Schemas{}
		}
		s.Subgraphs[name] = sub.AllSchemas()
	}
	return s
}
