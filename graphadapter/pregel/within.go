package pregel

import "fmt"

// subThread is a subgraph pending in a thread.
type subThread struct {
	*Program
	record    *Record
	keep      func(*Record)
	namespace string
	graph     []string // the subgraphs' names
}

// within finds the subgraph pending in the tasks of the nodes of that path.
func (p *Program) within(t *Thread, path []string) (subThread, error) {
	s := subThread{Program: p, record: t.Head, keep: func(r *Record) { t.Head = r }}
	for i, node := range path {
		missing := &InvalidUpdateError{Graph: p.Spec.Name, Message: fmt.Sprintf("no task of %q has a pending subgraph", node)}
		if s.record == nil {
			return s, missing
		}
		found := false
		for _, e := range s.record.tasks.sorted() {
			at, rec := e.path, e.rec
			sub, child := s.childOf(t, rec, path[:i])
			if rec.Node != node || child == nil {
				continue
			}
			space := childNamespace(&Task{Namespace: s.namespace, Step: s.record.Checkpoint.Step + 1, Path: at})
			key := memoryKey(path[:i], node)
			graph := append(s.graph, s.nodes[s.nodeAt[node]].spec.Subgraph)
			s = subThread{Program: sub, record: child, namespace: space, graph: graph, keep: func(r *Record) { rec.child = r }}
			if sub.Spec.Memory == MemoryThread {
				s.keep = func(r *Record) { t.memory[key] = r }
			}
			found = true
			break
		}
		if !found {
			return s, missing
		}
	}
	return s, nil
}

// Within returns the namespace of the subgraph pending in the tasks of the nodes of that path, and its program.
func (p *Program) Within(t *Thread, path []string) (*Program, string, error) {
	s, err := p.within(t, path)
	return s.Program, s.namespace, err
}
