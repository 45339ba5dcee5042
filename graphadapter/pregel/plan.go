package pregel

import (
	"slices"
	"strconv"
)

// plan returns the tasks that a checkpoint leads to: pending Sends in order, then triggered nodes. For execution
// (hint) only the nodes woken by the last superstep's channels are looked at, in order of name; for inspection all
// nodes in declaration order. That is LangGraph's rule, and visible to users.
func (p *Program) plan(c *Checkpoint, hint bool) []*Task {
	full := reader{program: p, of: c}
	tasks := p.sent(c.cells[p.tasks].sends(), &full)
	var few [fewWoken]int
	for _, at := range p.candidates(c, hint, few[:0]) {
		if p.triggered(c, at) {
			tasks = append(tasks, p.pull(c, at, &full))
		}
	}
	return tasks
}

// sent returns the tasks of pending Sends.
func (p *Program) sent(sends []Send, full *reader) []*Task {
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
		t.State = full.state()
		out = append(out, t)
	}
	return out
}

// takes returns the node that runs for a Send. LangGraph drops packets to unknown nodes.
func (p *Program) takes(s Send) (at int, ok bool) {
	at, known := p.nodeAt[s.Node]
	return at, known && at > 0 && !p.nodes[at].handles()
}

// reader builds the full state of a checkpoint once, when first needed.
type reader struct {
	program *Program
	of      *Checkpoint
	full    map[string]Held
}

func (r *reader) state() map[string]Held {
	if r.full == nil {
		r.full = r.program.held(r.of, nil)
	}
	return r.full
}

// fewWoken is how many nodes need no memory of their own while those to run are looked for.
const fewWoken = 16

// candidates are the nodes whose triggers are looked at. They are appended to room.
func (p *Program) candidates(c *Checkpoint, hint bool, room []int) []int {
	if c.fresh() {
		return nil
	}
	if !hint || !c.hasUpdated || len(c.updated) == 0 {
		return p.declared
	}
	woken := room
	for _, ch := range c.updated {
		woken = append(woken, p.channels[ch].wakes...)
	}
	slices.SortFunc(woken, func(a, b int) int { return p.rank[a] - p.rank[b] })
	return slices.Compact(woken)
}

// triggered is the trigger rule: some trigger is available and newer than what the node has seen.
func (p *Program) triggered(c *Checkpoint, at int) bool {
	seen := p.seenBy(c, at)
	for i, t := range p.nodes[at].triggers {
		if p.channels[t].available(&c.cells[t]) && c.versions[t] > seen[i] {
			return true
		}
	}
	return false
}

func (p *Program) pull(c *Checkpoint, at int, full *reader) *Task {
	n := &p.nodes[at]
	t := &Task{Path: n.name, Node: n.name, node: at, Branches: n.branches}
	if at == 0 || n.reads == nil || len(n.branches) > 0 {
		t.State = full.state() // branches read everything
		return t
	}
	t.State = make(map[string]Held, len(n.reads))
	for _, ch := range n.reads {
		if p.channels[ch].available(&c.cells[ch]) {
			t.State[p.channels[ch].name] = c.cells[ch].value
		}
	}
	return t
}

// Read returns a task's state with the task's own writes applied: what its branches see. For unwritten channels a superstep has gone
// by, which empties those that live for one; nothing of a sibling is visible. The task remembers what long values came to: a superstep in which nobody else writes
// these channels comes to the same, and does not make it again.
func (p *Program) Read(t *Task, writes []Write) (map[string]Held, error) {
	t.reduced = nil
	read := make(map[string]Held, p.state)
	for i := range p.state {
		ch := &p.channels[i]
		s := cell{value: t.State[ch.name]}
		if ch.pass(&s); ch.available(&s) {
			read[ch.name] = s.value
		}
	}
	writes = t.names().complete(p, writes) // as the engine does when the task has finished
	var few [fewWrites]channelWrite
	var room grouping
	channels, updates := p.group([]applied{{writes: p.stateWrites(few[:0], writes)}}, &room)
	for _, c := range channels {
		ch := &p.channels[c.channel]
		s := cell{value: t.State[ch.name]}
		seen := ch.reduces(s.value, updates[c.from:c.to])
		if _, err := ch.apply(p.Spec.Name, &s, updates[c.from:c.to]); err != nil {
			return nil, err
		}
		if seen != nil {
			seen.channel, seen.to = c.channel, s.value
			t.reduced = append(t.reduced, seen)
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
