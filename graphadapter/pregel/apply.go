package pregel

import "slices"

// applied is one task's part in a superstep.
type applied struct {
	node   int // -1 for writes from outside
	writes []channelWrite
}

// channelWrite is a write to a channel by ordinal.
type channelWrite struct {
	channel int
	update  update
}

// grouped are the writes of a superstep by channel, order being that of the first write to each.
type grouped struct {
	by    [][]update
	order []int
}

func (p *Program) group(writes ...[]channelWrite) grouped {
	g := grouped{by: make([][]update, len(p.channels))}
	for _, task := range writes {
		for _, w := range task {
			if len(g.by[w.channel]) == 0 {
				g.order = append(g.order, w.channel)
			}
			g.by[w.channel] = append(g.by[w.channel], w.update)
		}
	}
	return g
}

// stateWrites resolves writes to state channels; unknown keys are dropped, as in LangGraph.
func (p *Program) stateWrites(out []channelWrite, writes []Write) []channelWrite {
	for _, w := range writes {
		if at, ok := p.index[w.Channel]; ok && at < p.state {
			out = append(out, channelWrite{at, update{value: orNull(w.Value), overwrite: w.Overwrite}})
		}
	}
	return out
}

// targets resolves where control goes; [End] and unknown nodes are dropped, as in LangGraph.
func (p *Program) targets(out []channelWrite, targets []Target) []channelWrite {
	for _, t := range targets {
		if t.Send {
			out = append(out, channelWrite{p.tasks, update{send: &Send{Node: t.Node, Arg: orNull(t.Arg)}}})
			continue
		}
		if at, ok := p.nodeAt[t.Node]; ok && at > 0 {
			out = append(out, channelWrite{p.nodes[at].trigger, update{value: Null}})
		}
	}
	return out
}

// writes are everything that a finished task writes, in LangGraph's order: its state, its command's targets, its
// edges and joins, its branches' routes. Targets of a command add to the edges.
func (p *Program) writes(at int, c Command, routes []Target) []channelWrite {
	n := &p.nodes[at]
	out := make([]channelWrite, 0, len(c.Update)+len(c.Goto)+len(n.static)+len(routes))
	out = p.stateWrites(out, c.Update)
	out = p.targets(out, c.Goto)
	for _, s := range n.static {
		out = append(out, channelWrite{s.channel, update{value: Null, source: s.source}})
	}
	return p.targets(out, routes)
}

// apply runs one superstep's writes on a copy of c: section 3 of the semantics. parts must be in apply order. When it
// fails nothing was applied.
func (p *Program) apply(c *Checkpoint, parts []applied) (*Checkpoint, error) {
	return p.applyParts(c, parts, false)
}

// preview is apply as a snapshot of pending writes sees it: nothing counts as updated, so channels that live for one
// superstep are empty again (LangGraph's read-only apply).
func (p *Program) preview(c *Checkpoint, parts []applied) (*Checkpoint, error) {
	return p.applyParts(c, parts, true)
}

func (p *Program) applyParts(c *Checkpoint, parts []applied, readOnly bool) (*Checkpoint, error) {
	n := c.next()
	ran := p.ran(parts)
	n.ran = ran
	for _, at := range ran {
		p.markSeen(n, at)
	}
	version := c.top + 1
	p.consume(n, ran, version)
	updated := make([]bool, len(p.channels))
	writes := make([][]channelWrite, len(parts))
	for i, part := range parts {
		writes[i] = part.writes
	}
	g := p.group(writes...)
	for _, ch := range g.order {
		changed, err := p.channels[ch].apply(p.Spec.Name, &n.cells[ch], g.by[ch])
		if err != nil {
			return nil, err
		}
		p.touch(n, ch, changed, version, updated)
	}
	if readOnly {
		clear(updated)
	}
	if len(ran) > 0 {
		p.pass(n, version, updated)
		p.finish(n, version, updated)
	}
	n.updated, n.hasUpdated = n.updated[:0:0], true
	for ch, is := range updated {
		if is {
			n.updated = append(n.updated, ch)
		}
	}
	return n, nil
}

// ran returns the distinct nodes of a superstep. None means that only writes from outside are applied: those clear
// nothing and wake no deferred node.
func (p *Program) ran(parts []applied) []int {
	var out []int
	marked := make([]bool, len(p.nodes))
	for _, part := range parts {
		if part.node >= 0 && !marked[part.node] {
			marked[part.node] = true
			out = append(out, part.node)
		}
	}
	return out
}

// touch versions a changed channel and notes it when it has a value now.
func (p *Program) touch(c *Checkpoint, ch int, changed bool, version int64, updated []bool) {
	if !changed {
		return
	}
	c.versions[ch], c.top = version, version
	if p.channels[ch].available(&c.cells[ch]) {
		updated[ch] = true
	}
}

// markSeen records the versions of a node's triggers, before this superstep's bump.
func (p *Program) markSeen(c *Checkpoint, at int) {
	seen := make([]int64, len(p.nodes[at].triggers))
	copy(seen, c.seen[at])
	for i, t := range p.nodes[at].triggers {
		if c.versions[t] > 0 {
			seen[i] = c.versions[t]
		}
	}
	c.seen[at] = seen
}

func (p *Program) consume(c *Checkpoint, ran []int, version int64) {
	for _, at := range ran {
		for _, t := range p.nodes[at].triggers {
			if p.channels[t].consume(&c.cells[t]) {
				c.versions[t], c.top = version, version
			}
		}
	}
}

// pass tells every channel without a write that a superstep went by.
func (p *Program) pass(c *Checkpoint, version int64, updated []bool) {
	for ch := range p.channels {
		if !updated[ch] && p.channels[ch].available(&c.cells[ch]) {
			p.touch(c, ch, p.channels[ch].pass(&c.cells[ch]), version, updated)
		}
	}
}

// finish wakes deferred nodes when nothing that was updated triggers a node. Pending Sends do not count (LangGraph).
func (p *Program) finish(c *Checkpoint, version int64, updated []bool) {
	for ch, is := range updated {
		if is && len(p.channels[ch].wakes) > 0 {
			return
		}
	}
	for ch := range p.channels {
		p.touch(c, ch, p.channels[ch].finish(&c.cells[ch]), version, updated)
	}
}

// inOrder sorts a superstep's tasks for applying.
func (p *Program) inOrder(tasks []*taskRun) []*taskRun {
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(a, b *taskRun) int { return p.less(a.task, b.task) })
	return sorted
}
