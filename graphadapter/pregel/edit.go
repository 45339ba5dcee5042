package pregel

import "fmt"

// Edit is an update of a thread's state from outside, as if a node had returned it: section 10.3 of the semantics.
type Edit struct {
	prog   *Program
	thread *Thread
	keep   func(*Record)
	base   *Record // what it edits, nil for a thread that never ran
	from   *Checkpoint
	node   int // -1 when it finishes the thread
	values []Write
	space  string
}

// Edit begins an update of the newest checkpoint as the node asNode, which is inferred when it is "". nil values write
// nothing. asNode [End] drops what was about to run and takes no values. Errors: *InvalidUpdateError.
func (p *Program) Edit(t *Thread, values []Write, asNode string) (*Edit, error) {
	e := &Edit{prog: p, thread: t, base: t.Head, values: values, keep: func(r *Record) { t.Head = r }}
	return e, e.as(asNode)
}

// EditWithin is Edit for the subgraph pending in the tasks of the nodes of that path.
func (p *Program) EditWithin(t *Thread, path []string, values []Write, asNode string) (*Edit, error) {
	e := &Edit{thread: t, values: values}
	sub, err := p.within(t, path)
	if err != nil {
		return nil, err
	}
	e.prog, e.base, e.keep, e.space = sub.Program, sub.record, sub.keep, sub.namespace
	return e, e.as(asNode)
}

func (e *Edit) as(asNode string) error {
	e.from = e.prog.emptyCheckpoint()
	if e.base != nil {
		e.from = e.prog.loaded(e.base.Checkpoint)
	}
	fail := func(format string, args ...any) error {
		return &InvalidUpdateError{Graph: e.prog.Spec.Name, Message: fmt.Sprintf(format, args...)}
	}
	if asNode == End {
		if e.values != nil {
			return fail("an update as %s takes no values", End)
		}
		e.node = -1
		return nil
	}
	if asNode == "" {
		if asNode = e.prog.lastNode(e.from); asNode == "" {
			return fail("ambiguous update: several nodes ran last, say as which node")
		}
	}
	at, ok := e.prog.nodeAt[asNode]
	if !ok {
		return fail("there is no node %q to update as", asNode)
	}
	e.node = at
	return nil
}

// lastNode is the node that ran last: the one that has seen the newest trigger. It is the entry when none ran and nothing
// was resumed, and "" when several triggers were seen last, also when they are all one node's.
func (p *Program) lastNode(c *Checkpoint) string {
	var newest int64
	name := Start
	for _, v := range c.interruptSeen {
		if v > 0 {
			name = "" // a resume counts as somebody having run (LangGraph), but not as whom
		}
	}
	for at, seen := range c.seen {
		for _, v := range seen {
			switch {
			case v == 0:
			case v > newest:
				newest, name = v, p.nodes[at].name
			case v == newest:
				name = ""
			}
		}
	}
	return name
}

// Task returns the task whose branches are to be evaluated before Apply; nil when the node has none.
func (e *Edit) Task() *Task {
	if e.node < 0 || len(e.prog.nodes[e.node].branches) == 0 {
		return nil
	}
	t := e.prog.pull(e.from, e.node, e.prog.reader(e.from))
	t.State = e.prog.values(e.from, nil)
	t.Step, t.RouteOnly, t.Done, t.Namespace = e.step(), true, Command{Update: e.values}, e.space
	return t
}

func (e *Edit) step() int { return max(e.from.Step, -1) + 1 }

// Apply makes the new checkpoint the thread's newest and returns its record.
func (e *Edit) Apply(routes []Target) (*Record, error) {
	next, err := e.applied(routes)
	if err != nil {
		return nil, err
	}
	next.updated, next.hasUpdated = nil, false
	parent := e.prog.emptyCheckpoint()
	var memory map[string]*Record
	if e.base != nil {
		parent, memory = e.base.Checkpoint, e.base.memory
	}
	e.thread.seq++
	next.Branch = e.from.Branch
	if e.thread.forked {
		next.Branch, e.thread.forked = "b"+itoa(e.thread.seq), false
	}
	e.prog.seal(next, parent, e.space, SourceUpdate, e.step(), e.thread.seq)
	r := &Record{Checkpoint: next, tasks: map[string]*TaskRecord{}, memory: memory}
	e.keep(r)
	return r, nil
}

func (e *Edit) applied(routes []Target) (*Checkpoint, error) {
	if e.node < 0 {
		return e.finished()
	}
	c := Command{Update: e.values}
	writes := e.prog.writes(nil, e.node, &c, routes)
	if e.node == 0 {
		writes = e.prog.fromInput(writes)
	}
	return e.prog.applyEdit(e.from, writes)
}

// finished applies what is known of the pending tasks and drops the rest of them.
func (e *Edit) finished() (*Checkpoint, error) {
	if e.base == nil {
		return e.from, nil
	}
	l := &Loop{prog: e.prog, rec: e.base, work: e.from}
	planned := e.prog.plan(l.work, false)
	if err := l.applyControl(); err != nil {
		return nil, err
	}
	var parts []applied
	for _, tr := range e.prog.inOrder(e.prog.known(e.base, planned)) {
		part := applied{node: tr.task.node}
		if tr.rec.Done {
			rec := e.prog.tracked(tr.rec)
			part.writes = e.prog.writes(nil, tr.task.node, &rec.Command, rec.Routes)
		}
		parts = append(parts, part)
	}
	return e.prog.apply(l.work, parts)
}

// fromInput leaves out the writes to channels that the input may not write.
func (p *Program) fromInput(writes []channelWrite) []channelWrite {
	out := writes[:0:0]
	for _, w := range writes {
		if w.channel >= p.state || p.inputs[w.channel] {
			out = append(out, w)
		}
	}
	return out
}

// applyEdit applies an update: a superstep goes by, but no node has seen its triggers.
func (p *Program) applyEdit(c *Checkpoint, writes []channelWrite) (*Checkpoint, error) {
	n := c.next()
	version := c.top + 1
	updated := make([]bool, len(p.channels))
	for _, g := range p.group([]applied{{writes: writes}}) {
		changed, err := p.channels[g.channel].apply(p.Spec.Name, &n.cells[g.channel], g.updates)
		if err != nil {
			return nil, err
		}
		p.touch(n, g.channel, changed, version, updated)
	}
	p.pass(n, version, updated)
	p.finish(n, version, updated)
	return n, nil
}

// subThread is a subgraph pending in a thread.
type subThread struct {
	*Program
	record    *Record
	keep      func(*Record)
	namespace string
}

// within finds the subgraph pending in the tasks of the nodes of that path.
func (p *Program) within(t *Thread, path []string) (subThread, error) {
	s := subThread{Program: p, record: t.Head}
	for i, node := range path {
		missing := &InvalidUpdateError{Graph: p.Spec.Name, Message: fmt.Sprintf("no task of %q has a pending subgraph", node)}
		if s.record == nil {
			return s, missing
		}
		found := false
		for _, at := range sortedKeys(s.record.tasks) {
			rec := s.record.tasks[at]
			sub, child := s.childOf(t, rec, path[:i])
			if rec.Node != node || child == nil {
				continue
			}
			space := childNamespace(&Task{Namespace: s.namespace, Step: s.record.Checkpoint.Step + 1, Path: at})
			key := memoryKey(path[:i], node)
			s = subThread{Program: sub, record: child, namespace: space, keep: func(r *Record) { rec.child = r }}
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
