package pregel

import (
	"errors"
	"slices"
)

// applied is one task's part in a superstep.
type applied struct {
	node int // -1 for writes from outside
	// sent says that a Send made the task, and not its node's triggers: what was written to these still counts.
	sent   bool
	writes []channelWrite
}

// channelWrite is a write to a channel by ordinal.
type channelWrite struct {
	channel int
	update  update
}

// fewChannels and fewWrites are how many need no memory of their own while writes are sorted by channel.
const (
	fewChannels = 32
	fewWrites   = 8
)

// grouping is the memory of few writes, zero for each use.
type grouping struct {
	places   [fewChannels]int32
	channels [fewWrites]channelWrites
	updates  [fewWrites]update
}

// channelWrites is where those to one channel are among the writes of a superstep.
type channelWrites struct{ channel, from, to int }

// group sorts the writes of a superstep by channel, in the order of the first write to each. They share one list: a
// superstep may have ten thousand of them.
func (p *Program) group(parts []applied, room *grouping) (channels []channelWrites, updates []update) {
	places := room.places[:] // in the result, from 1
	if len(p.channels) > fewChannels {
		places = make([]int32, len(p.channels))
	}
	channels, total := room.channels[:0], 0
	for _, part := range parts {
		for _, w := range part.writes {
			if places[w.channel] == 0 {
				channels = append(channels, channelWrites{channel: w.channel})
				places[w.channel] = int32(len(channels))
			}
			channels[places[w.channel]-1].to++ // a count for now
		}
		total += len(part.writes)
	}
	from := 0
	for i := range channels {
		c := &channels[i]
		c.from, c.to, from = from, from, from+c.to
	}
	if updates = room.updates[:]; total > fewWrites {
		updates = make([]update, total)
	}
	for _, part := range parts {
		for _, w := range part.writes {
			c := &channels[places[w.channel]-1]
			updates[c.to] = w.update
			c.to++
		}
	}
	return channels, updates
}

// stateWrites resolves writes to state channels; unknown keys are dropped, as in LangGraph.
func (p *Program) stateWrites(out []channelWrite, writes []Write) []channelWrite {
	out = slices.Grow(out, len(writes))
	for _, w := range writes {
		if at, ok := p.index[w.Channel]; ok && at < p.state {
			out = append(out, channelWrite{at, update{value: orNull(w.Value), overwrite: w.Overwrite}})
		}
	}
	return out
}

// remind adds to a task's writes what long values were seen to come to with them.
func (t *Task) remind(writes []channelWrite) {
	for _, r := range t.reduced {
		if at := slices.IndexFunc(writes, func(w channelWrite) bool { return w.channel == r.channel }); at >= 0 {
			writes[at].update.reduced = r
		}
	}
}

// targets resolves where control goes; [End] and unknown nodes are dropped, as in LangGraph.
func (p *Program) targets(out []channelWrite, targets []Target) []channelWrite {
	var sends []Send
	for i, t := range targets {
		if t.Send {
			if len(sends) == cap(sends) {
				sends = make([]Send, 0, len(targets)-i)
			}
			sends = append(sends, Send{Node: t.Node, Arg: orNull(t.Arg), Timeouts: t.Timeouts})
			out = append(out, channelWrite{p.tasks, update{send: &sends[len(sends)-1]}})
			continue
		}
		if at, ok := p.nodeAt[t.Node]; ok && at > 0 && !p.nodes[at].handles() {
			out = append(out, channelWrite{p.nodes[at].trigger, update{value: Null}})
		}
	}
	return out
}

// writes are everything that a finished task writes, in LangGraph's order: its state, its command's targets, its
// edges and joins, its branches' routes. Targets of a command add to the edges. They are appended to out.
func (p *Program) writes(out []channelWrite, at int, c *Command, routes []Target) []channelWrite {
	n := &p.nodes[at]
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
	return p.applyAs(asSuperstep, c, parts)
}

// writtenBy completes the error of a channel with the nodes that wrote it, in apply order: each once.
func (p *Program) writtenBy(err error, parts []applied, channel int) error {
	var invalid *InvalidUpdateError
	if !errors.As(err, &invalid) {
		return err
	}
	for _, part := range parts {
		if part.node < 0 || !slices.ContainsFunc(part.writes, func(w channelWrite) bool { return w.channel == channel }) {
			continue
		}
		if name := p.nodes[part.node].name; !slices.Contains(invalid.Nodes, name) {
			invalid.Nodes = append(invalid.Nodes, name)
		}
	}
	return err
}

// applying says how writes are applied.
type applying int

const (
	asSuperstep applying = iota
	// asPreview is how a snapshot sees pending writes: nothing counts as updated, so channels that live for one superstep are
	// empty again (LangGraph's read-only apply).
	asPreview
	// asEdit is for an update from outside: a superstep goes by, though no node has run or seen its triggers.
	asEdit
)

func (p *Program) applyAs(how applying, c *Checkpoint, parts []applied) (*Checkpoint, error) {
	n := c.next()
	ran := p.ran(parts)
	n.ran = ran
	led := p.triggeredBy(parts, ran)
	for _, at := range led {
		p.markSeen(n, at)
	}
	version := c.top + 1
	p.consume(n, led, version)
	var few [fewChannels]bool
	updated := flags(&few, len(p.channels))
	var room grouping
	channels, updates := p.group(parts, &room)
	for _, c := range channels {
		changed, err := p.channels[c.channel].apply(p.Spec.Name, &n.cells[c.channel], updates[c.from:c.to])
		if err != nil {
			return nil, p.writtenBy(err, parts, c.channel)
		}
		p.touch(n, c.channel, changed, version, updated)
	}
	if how == asPreview {
		clear(updated)
	}
	if len(ran) > 0 || how == asEdit {
		p.pass(n, version, updated)
		p.finish(n, version, updated)
	}
	n.updated, n.hasUpdated = marked(updated), true
	return n, nil
}

// flags returns n flags that are false, in room when that suffices.
func flags(room *[fewChannels]bool, n int) []bool {
	if n > len(room) {
		return make([]bool, n)
	}
	return room[:n]
}

// marked returns the places that are true, in order.
func marked(all []bool) []int {
	count := 0
	for _, is := range all {
		if is {
			count++
		}
	}
	out := make([]int, 0, count)
	for at, is := range all {
		if is {
			out = append(out, at)
		}
	}
	return out
}

// ran returns the distinct nodes of a superstep. None means that only writes from outside are applied: those clear
// nothing and wake no deferred node.
func (p *Program) ran(parts []applied) []int {
	var out []int
	var few [fewChannels]bool
	marked := flags(&few, len(p.nodes))
	for _, part := range parts {
		if part.node >= 0 && !marked[part.node] {
			marked[part.node] = true
			out = append(out, part.node)
		}
	}
	return out
}

// triggeredBy are those of the nodes that ran to which their triggers led.
func (p *Program) triggeredBy(parts []applied, ran []int) []int {
	if !slices.ContainsFunc(parts, func(part applied) bool { return part.sent }) {
		return ran
	}
	return p.ran(slices.DeleteFunc(slices.Clone(parts), func(part applied) bool { return part.sent }))
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
	seen := p.seenBy(c, at)
	for i, t := range p.nodes[at].triggers {
		switch v := c.versions[t]; {
		case v > 0:
			seen[i] = v
		case seen[i] == unseen:
			seen[i] = 0
		}
	}
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
