package pregel

import (
	"slices"
	"strconv"
)

// plan returns the tasks that a checkpoint leads to: pending Sends in order, then triggered nodes. For execution
// (hint) only the nodes woken by the last superstep's channels are looked at, in order of name; for inspection all
// nodes in declaration order. That is LangGraph's rule, and visible to users.
func (p *Program) plan(c *Checkpoint, hint bool) []*Task {
	full := p.reader(c)
	tasks := p.sent(c.cells[p.tasks].sends, full)
	for _, at := range p.candidates(c, hint) {
		if p.triggered(c, at) {
			tasks = append(tasks, p.pull(c, at, full))
		}
	}
	return tasks
}

// sent returns the tasks of pending Sends.
func (p *Program) sent(sends []Send, full func() map[string]Value) []*Task {
	if len(sends) == 0 {
		return nil
	}
	out, all := make([]*Task, 0, len(sends)), make([]Task, len(sends))
	var path []byte
	for i, s := range sends {
		at, takes := p.takes(s)
		if !takes {
			continue
		}
		path = strconv.AppendInt(append(append(path[:0], s.Node...), ':'), int64(i), 10)
		t := &all[i]
		t.Path, t.Node, t.Arg, t.node, t.send, t.Branches = string(path), s.Node, s.Arg, at, i, p.nodes[at].branches
		t.Timeouts = s.Timeouts
		t.State = full()
		out = append(out, t)
	}
	return out
}

// takes returns the node that runs for a Send. LangGraph drops packets to unknown nodes.
func (p *Program) takes(s Send) (at int, ok bool) {
	at, known := p.nodeAt[s.Node]
	return at, known && at > 0 && !p.nodes[at].handles()
}

// reader returns a function that builds the full state once, when first needed.
func (p *Program) reader(c *Checkpoint) func() map[string]Value {
	var full map[string]Value
	return func() map[string]Value {
		if full == nil {
			full = p.values(c, nil)
		}
		return full
	}
}

func (p *Program) candidates(c *Checkpoint, hint bool) []int {
	if c.fresh() {
		return nil
	}
	if !hint || !c.hasUpdated || len(c.updated) == 0 {
		return p.declared
	}
	var woken []int
	for _, ch := range c.updated {
		woken = append(woken, p.channels[ch].wakes...)
	}
	slices.SortFunc(woken, func(a, b int) int { return p.rank[a] - p.rank[b] })
	return slices.Compact(woken)
}

// triggered is the trigger rule: some trigger is available and newer than what the node has seen.
func (p *Program) triggered(c *Checkpoint, at int) bool {
	seen := c.seen[at]
	for i, t := range p.nodes[at].triggers {
		if p.channels[t].available(&c.cells[t]) && (seen == nil || c.versions[t] > seen[i]) {
			return true
		}
	}
	return false
}

func (p *Program) pull(c *Checkpoint, at int, full func() map[string]Value) *Task {
	n := &p.nodes[at]
	t := &Task{Path: n.name, Node: n.name, node: at, Branches: n.branches}
	if at == 0 || n.reads == nil || len(n.branches) > 0 {
		t.State = full() // branches read everything
		return t
	}
	t.State = make(map[string]Value, len(n.reads))
	for _, ch := range n.reads {
		if p.channels[ch].available(&c.cells[ch]) {
			t.State[p.channels[ch].name] = c.cells[ch].value
		}
	}
	return t
}

// Read returns state with one task's own writes applied: what that task's branches see. Unwritten channels are as in
// state; nothing of a sibling is visible.
func (p *Program) Read(state map[string]Value, writes []Write) (map[string]Value, error) {
	read := make(map[string]Value, p.state)
	for i := range p.state {
		if v := state[p.channels[i].name]; v != nil {
			read[p.channels[i].name] = v
		}
	}
	for _, g := range p.group([]applied{{writes: p.stateWrites(nil, writes)}}) {
		ch := &p.channels[g.channel]
		s := cell{value: state[ch.name]}
		if _, err := ch.apply(p.Spec.Name, &s, g.updates); err != nil {
			return nil, err
		}
		if delete(read, ch.name); ch.available(&s) {
			read[ch.name] = s.value
		}
	}
	return read, nil
}

// less orders the tasks of a superstep for applying: nodes by name, then Sends by index (the opposite of how they are
// listed; LangGraph's rule).
func (p *Program) less(a, b *Task) int {
	switch {
	case a.IsSend() != b.IsSend():
		if a.IsSend() {
			return 1
		}
		return -1
	case a.IsSend():
		return a.send - b.send
	default:
		return p.rank[a.node] - p.rank[b.node]
	}
}
