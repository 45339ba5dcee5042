package pregel

import (
	"fmt"
	"slices"
)

// subThread is the subgraph of a task of a thread.
type subThread struct {
	*Program
	record    *Record // nil before it begins
	keep      func(*Record)
	namespace string
	graph     []string // the subgraphs' names
}

// within finds the subgraph of the tasks of the nodes of that path: as far as it has come, or before it begins.
func (p *Program) within(t *Thread, path []string) (subThread, error) {
	s := subThread{Program: p, record: t.Head, keep: func(r *Record) { t.Head = r }}
	for i, node := range path {
		missing := &InvalidUpdateError{Graph: p.Spec.Name, Message: fmt.Sprintf("no task of %q runs a subgraph that keeps a state", node)}
		if s.record == nil {
			return s, missing
		}
		outer := s.record
		planned := s.plan(s.loaded(outer.Checkpoint), false)
		at := slices.IndexFunc(planned, func(task *Task) bool {
			sub := s.nodes[task.node].sub
			return task.Node == node && sub != nil && sub.Spec.Memory != MemoryNone
		})
		if at < 0 {
			return s, missing
		}
		rec, known := outer.tasks.of(planned[at].Path)
		if !known {
			rec = &TaskRecord{Node: node}
		}
		sub, child := s.childOf(t, rec, path[:i])
		space := childNamespace(&Task{Namespace: s.namespace, Step: outer.Checkpoint.Step + 1, Path: planned[at].Path})
		key := memoryKey(path[:i], node)
		graph := append(s.graph[:len(s.graph):len(s.graph)], s.nodes[planned[at].node].spec.Subgraph)
		s = subThread{Program: sub, record: child, namespace: space, graph: graph, keep: func(r *Record) {
			if rec.child = r; !known {
				outer.tasks.put(planned[at].Path, rec)
			}
		}}
		if sub.Spec.Memory == MemoryThread {
			s.keep = func(r *Record) { t.memory[key] = r }
		}
	}
	return s, nil
}

// Within returns the namespace of the subgraph of the tasks of the nodes of that path, and its program.
func (p *Program) Within(t *Thread, path []string) (*Program, string, error) {
	s, err := p.within(t, path)
	return s.Program, s.namespace, err
}
