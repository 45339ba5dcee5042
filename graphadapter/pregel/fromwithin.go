package pregel

import (
	"fmt"
	"strings"
)

// CheckFromWithin refuses a command that came from a graph within a node's task, when it goes where this graph has no
// node, or gives timeouts to a subgraph's. Who sent it does not know this graph; LangGraph drops such ways, and the run
// ends as if it had finished. A *InvalidUpdateError.
func (p *Program) CheckFromWithin(c *Command) error {
	for _, t := range c.Goto {
		at, known := p.nodeAt[t.Node]
		problem := ""
		switch {
		case !t.Send && t.Node == End:
		case !known || at == 0 || p.nodes[at].handles():
			problem = "which this graph does not have: it has " + strings.Join(p.targetNames(), ", ")
		case t.Bounds() && p.nodes[at].sub != nil:
			problem = "with timeouts, which a subgraph's node cannot have"
		}
		if problem != "" {
			return &InvalidUpdateError{Graph: p.Spec.Name,
				Message: fmt.Sprintf("a command from a graph within goes to %q, %s", t.Node, problem)}
		}
	}
	return nil
}

// targetNames are the nodes that control can go to.
func (p *Program) targetNames() []string {
	var names []string
	for i := range p.nodes {
		if i > 0 && !p.nodes[i].handles() {
			names = append(names, p.nodes[i].name)
		}
	}
	return names
}
