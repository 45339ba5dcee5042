package pregel

// breakpoints is a compiled interrupt list.
type breakpoints struct {
	all   bool
	some  bool // it holds anything at all
	nodes []bool
}

func (p *Program) breakpoints(names []string) breakpoints {
	b := breakpoints{some: len(names) > 0, nodes: make([]bool, len(p.nodes))}
	for _, name := range names {
		if name == All {
			b.all = true
			continue
		}
		if at, ok := p.nodeAt[name]; ok && !p.nodes[at].handles() {
			b.nodes[at] = true
		}
	}
	return b
}

// hit reports whether a breakpoint holds one of the tasks. [All] leaves out the entry, which no user wrote. Error handlers
// are in no list; they stop with the node whose failure they handle.
func (b breakpoints) hit(tasks []*Task) bool {
	for _, t := range tasks {
		if b.nodes[t.node] || b.all && t.node != 0 {
			return true
		}
	}
	return false
}
