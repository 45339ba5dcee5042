package pregel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Update is one write to a thread's state from outside, as if a node had returned it.
//
// LangGraph's pseudo nodes are nodes here too: [End] finishes what was about to run with what is known of it, [AsInput]
// takes Input as new input of the graph, and [AsCopy] makes a sibling of the checkpoint, onto which Copied are applied.
type Update struct {
	// Values is the update; nil routes on without writing.
	Values []Write `json:"values,omitempty"`
	// AsNode is the node whose edges and branches decide what comes next; "" infers it.
	AsNode string `json:"as_node,omitempty"`
	// Input is the input, for AsInput: an object that is not empty. Values may say it as well, field by field.
	Input Value `json:"input,omitempty"`
	// Copied are updates on top of the copy, for AsCopy: one superstep of them all.
	Copied []Update `json:"copied,omitempty"`
}

// Edit is one superstep of updates of a thread's state from outside: sections 10.3 and 10.4 of the semantics. It makes
// one checkpoint, or two when a copy is updated.
type Edit struct {
	prog   *Program
	thread *Thread
	keep   func(*Record)
	base   *Record // what it edits, nil for a thread that never ran
	from   *Checkpoint
	as     string   // a pseudo node, "" for nodes
	input  Value    // as input
	edits  []edited // of nodes
	space  string
	graph  []string
	nodes  []string // that lead to the graph
}

// edited is an update of a node.
type edited struct {
	node   int
	values []Write
}

// Edit begins a superstep of updates of the newest checkpoint: of the root graph, or of the subgraph that is pending in
// the tasks of the nodes of that path. A single update's node is inferred when it has none: the one that ran last.
// Several updates each name their node; the same may come again, a pseudo node may not.
//
// The thread stays as it is until Apply. Errors: *InvalidUpdateError.
func (p *Program) Edit(t *Thread, path []string, updates []Update) (*Edit, error) {
	sub, err := p.within(t, path)
	if err != nil {
		return nil, err
	}
	e := &Edit{thread: t, prog: sub.Program, base: sub.record, keep: sub.keep, space: sub.namespace, graph: sub.graph, nodes: path}
	e.from = e.prog.emptyCheckpoint()
	if e.base != nil {
		e.from = e.prog.loaded(e.base.Checkpoint)
	}
	if len(updates) == 0 {
		return nil, e.fail("there is no update: give at least one")
	}
	if len(updates) == 1 && pseudo(updates[0].AsNode) {
		return e, e.special(updates[0])
	}
	return e, e.addAll(updates)
}

func (e *Edit) fail(format string, args ...any) error {
	return &InvalidUpdateError{Graph: e.prog.Spec.Name, Message: fmt.Sprintf(format, args...)}
}

func pseudo(node string) bool { return node == End || node == AsInput || node == AsCopy }

// special takes in an update as a pseudo node.
func (e *Edit) special(u Update) error {
	e.as = u.AsNode
	switch {
	case u.Values != nil && (u.AsNode != AsInput || u.Input != nil):
		return e.fail("an update as %s takes no values", u.AsNode)
	case u.Input != nil && u.AsNode != AsInput, u.Copied != nil && u.AsNode != AsCopy:
		return e.fail("an update as %s takes neither the input nor the updates of another kind", u.AsNode)
	case u.AsNode == AsCopy && e.base == nil:
		return e.fail("there is no checkpoint to copy: the thread never ran")
	case u.AsNode == AsInput && u.Values != nil:
		return e.takeInput(inputOf(u.Values))
	case u.AsNode == AsInput:
		return e.takeInput(u.Input)
	case len(u.Copied) > 0:
		return e.addAll(byNode(u.Copied))
	}
	return nil
}

// inputOf is the object of those fields.
func inputOf(values []Write) Value {
	fields := make(map[string]Value, len(values))
	for _, w := range values {
		fields[w.Channel] = orNull(w.Value)
		if w.Overwrite {
			fields[w.Channel] = encodeObject(map[string]Value{overwriteKey: orNull(w.Value)})
		}
	}
	return encodeObject(fields)
}

func (e *Edit) takeInput(input Value) error {
	var fields map[string]Value
	err := json.Unmarshal(input, &fields)
	if valid := e.prog.Spec.Function && json.Valid(input) && !IsNull(input); !valid && (err != nil || len(fields) == 0) {
		return e.fail("an update as %s takes an input: a JSON object that is not empty, not %q", AsInput, brief(input))
	}
	if err := e.prog.checkReserved(input); err != nil {
		return err
	}
	e.input, err = compact(input)
	return err
}

// byNode brings the updates of a copy together by node, as LangGraph does: in the order of each node's first.
func byNode(updates []Update) []Update {
	var nodes []string
	for _, u := range updates {
		if !slices.Contains(nodes, u.AsNode) {
			nodes = append(nodes, u.AsNode)
		}
	}
	out := slices.Clone(updates)
	slices.SortStableFunc(out, func(a, b Update) int {
		return slices.Index(nodes, a.AsNode) - slices.Index(nodes, b.AsNode)
	})
	return out
}

func (e *Edit) addAll(updates []Update) error {
	for _, u := range updates {
		if err := e.add(u, len(updates) == 1); err != nil {
			return err
		}
	}
	return nil
}

func (e *Edit) add(u Update, alone bool) error {
	switch {
	case pseudo(u.AsNode):
		return e.fail("an update as %s is the only one of its superstep", u.AsNode)
	case u.Input != nil || u.Copied != nil:
		return e.fail("an update as %q takes values, no input or copy: those are for %s and %s", u.AsNode, AsInput, AsCopy)
	case u.AsNode == "" && !alone:
		return e.fail("several updates of one superstep must each say as which node")
	case u.AsNode == "":
		if u.AsNode = e.prog.lastNode(e.from); u.AsNode == "" {
			return e.fail("ambiguous update: several nodes ran last, say as which node")
		}
	}
	at, ok := e.prog.nodeAt[u.AsNode]
	if !ok {
		return e.fail("there is no node %q to update as", u.AsNode)
	}
	for _, w := range u.Values {
		if w.Value != nil && !json.Valid(w.Value) {
			return e.fail("the value %q for channel %q is not JSON", brief(w.Value), w.Channel)
		}
	}
	if at == 0 {
		u.Values = e.prog.accepted(u.Values)
	}
	u.Values = namesIn(e.thread.origin, "update", e.space, e.from.Branch, itoa(e.thread.seq), itoa(len(e.edits))).complete(e.prog, u.Values)
	e.edits = append(e.edits, edited{at, u.Values})
	return nil
}

// accepted leaves out the writes to channels that the input may not write.
func (p *Program) accepted(writes []Write) []Write {
	var out []Write
	for _, w := range writes {
		if at, ok := p.index[w.Channel]; ok && at < p.state && p.inputs[at] {
			out = append(out, w)
		}
	}
	return out
}

// lastNode is the node that ran last: the one that has seen the newest trigger. It is the entry when none ran and nothing
// was resumed, and "" when several triggers were seen last, also when they are all one node's. A function is always meant.
func (p *Program) lastNode(c *Checkpoint) string {
	if p.Spec.Function {
		return p.nodes[1].name
	}
	var newest int64
	name := Start
	for _, v := range c.interruptSeen {
		if v > 0 {
			name = "" // a resume counts as somebody having run (LangGraph), but not as whom
		}
	}
	for at := range p.nodes {
		for _, v := range p.seenBy(c, at) {
			switch {
			case v <= 0:
			case v > newest:
				newest, name = v, p.nodes[at].name
			case v == newest:
				name = ""
			}
		}
	}
	return name
}

// Namespace is that of the graph that is edited: "" for the root.
func (e *Edit) Namespace() string { return e.space }

// Tasks returns the tasks whose branches are to be evaluated before Apply, for each update of a node that has some. They
// see the edited state with their own update applied, and none of the others'.
func (e *Edit) Tasks() []*Task {
	var out []*Task
	for i, u := range e.edits {
		if len(e.prog.nodes[u.node].branches) == 0 {
			continue
		}
		t := e.prog.pull(e.from, u.node, &reader{program: e.prog, of: e.from})
		t.Path += ":edit" + itoa(i) // a name of its own: the node's task of that superstep is another one
		t.Namespace, t.Graph, t.Branch, t.Digest, t.Origin = e.space, e.graph, e.from.Branch, e.from.Digest, e.thread.origin
		t.Step, t.RouteOnly, t.Done = e.step(), true, Command{Update: u.values}
		out = append(out, t)
	}
	return out
}

// step is that of the checkpoint which the nodes' updates make.
func (e *Edit) step() int {
	step := max(e.from.Step, -1) + 1
	if e.as == AsCopy {
		step++
	}
	return step
}

// subThread is the subgraph of a task of a thread.
type subThread struct {
	*Program
	record    *Record // nil before it begins
	keep      func(*Record)
	namespace string
	graph     []string // the subgraphs' names
}

// within finds the subgraph that the tasks of the nodes of that path run, also one that has not begun.
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
		graph := append(slices.Clip(s.graph), s.nodes[planned[at].node].spec.Subgraph)
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

// SubgraphAt returns the subgraph of the tasks of the nodes of that path: its program, its namespace and the id of its newest
// checkpoint, "" before it begins.
func (p *Program) SubgraphAt(t *Thread, path []string) (sub *Program, namespace, newest string, err error) {
	s, err := p.within(t, path)
	if s.record != nil {
		newest = s.record.Checkpoint.ID
	}
	return s.Program, s.namespace, newest, err
}
