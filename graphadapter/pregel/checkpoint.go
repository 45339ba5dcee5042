package pregel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Source says what made a checkpoint.
type Source string

// The checkpoint sources are LangGraph's.
const (
	SourceInput  Source = "input"
	SourceLoop   Source = "loop"
	SourceUpdate Source = "update"
	SourceFork   Source = "fork"
)

// Checkpoint is a thread's state between two supersteps. It is immutable: applying a superstep makes another one that
// shares what did not change.
type Checkpoint struct {
	// ID is unique in the thread; Parent is the id of the checkpoint it was made from, "" for the first.
	ID, Parent string
	Source     Source
	// Step is LangGraph's step: -1 for the first input, 0 once the input is applied.
	Step int
	// Seq counts the thread's checkpoints: the newest has the highest.
	Seq int
	// Branch tells apart the lines of a forked thread; "" for the first line.
	Branch string
	// Digest sums up every value that led here: equal histories under equal reducers have equal digests.
	Digest string

	cells    []cell
	versions []int64 // by channel; 0 means never written
	top      int64   // the highest version
	// seen are the versions of its triggers that each node has seen, as Program.seenAt places them: unseen for one that
	// they have led to nowhere yet.
	seen []int64
	// interruptSeen are the versions at the last resume, nil before the first: a breakpoint fires only on news.
	interruptSeen []int64
	updated       []int // channels that the last superstep left available, sorted
	ran           []int // the nodes whose writes made this checkpoint
	hasUpdated    bool
}

// unseen is the version that a node has seen of a trigger before its triggers first led to it.
const unseen = -1

// emptyStep is the step of a thread's state before its first checkpoint.
const emptyStep = -2

func (p *Program) emptyCheckpoint() *Checkpoint {
	cp := &Checkpoint{
		Step:     emptyStep,
		cells:    make([]cell, len(p.channels)),
		versions: make([]int64, len(p.channels)),
		seen:     make([]int64, p.triggers),
	}
	for i := range cp.seen {
		cp.seen[i] = unseen
	}
	for i := range p.channels {
		cp.cells[i].value = Hold(p.channels[i].zero)
	}
	return cp
}

// next returns a copy to change, with c as its parent. The caller sets Source, Step and seals it.
func (c *Checkpoint) next() *Checkpoint {
	n := *c
	n.cells = slices.Clone(c.cells)
	both := append(append(make([]int64, 0, len(c.versions)+len(c.seen)), c.versions...), c.seen...)
	n.versions, n.seen = both[:len(c.versions):len(c.versions)], both[len(c.versions):]
	return &n
}

// fresh reports whether no superstep or input ever wrote to the thread.
func (c *Checkpoint) fresh() bool { return c.top == 0 }

// held returns the selected state channels that have a value. An unwritten reducing channel shows its zero value;
// that is LangGraph's rule too.
func (p *Program) held(c *Checkpoint, selected []bool) map[string]Held {
	out := make(map[string]Held, p.state)
	for i := range p.state {
		if (selected == nil || selected[i]) && p.channels[i].available(&c.cells[i]) {
			out[p.channels[i].name] = c.cells[i].value
		}
	}
	return out
}

// StateOf returns the channels that have a value in a checkpoint.
func (p *Program) StateOf(c *Checkpoint) map[string]Value { return whole(p.held(c, nil)) }

// OutputOf returns the output channels that have a value in a checkpoint.
func (p *Program) OutputOf(c *Checkpoint) map[string]Value { return whole(p.held(c, p.outputs)) }

// A checkpoint's id is a prefix and the first digits of its digest.
const (
	idPrefix = "c-"
	idDigits = 10
)

// seal gives a new checkpoint its identity. The digest covers the parent's digest and every value that changed, a long
// one by its own digest, so that a changed reducer or engine is noticed at the next activity id instead of corrupting the
// run.
func (p *Program) seal(c, parent *Checkpoint, namespace string, source Source, step, seq int) {
	text := make([]byte, 0, 512)
	put := func(s string) {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	put(parent.Digest)
	put(namespace)
	put(string(source))
	text = binary.AppendVarint(text, int64(step))
	put(c.Branch)
	for i := range c.versions {
		if c.versions[i] == parent.versions[i] {
			continue
		}
		put(p.channels[i].name)
		text = c.cells[i].appendIdentity(text)
		for _, s := range c.cells[i].sends() {
			put(s.Node)
			text = binary.AppendUvarint(text, uint64(len(s.Arg)))
			text = append(text, s.Arg...)
		}
		for _, source := range c.cells[i].seen() {
			text = binary.AppendUvarint(text, uint64(source))
		}
	}
	sum := sha256.Sum256(text)
	named := string(hex.AppendEncode(append(text[:0], idPrefix...), sum[:]))
	// Lines of a thread that could repeat each other have a branch each, so the digest tells all checkpoints apart.
	c.ID, c.Digest = named[:len(idPrefix)+idDigits], named[len(idPrefix):]
	c.Parent, c.Source, c.Step, c.Seq = parent.ID, source, step, seq
}

// WithParent returns the checkpoint with another parent: a run that stores only its end joins it to where it began.
func (c *Checkpoint) WithParent(id string) *Checkpoint {
	n := *c
	n.Parent = id
	return &n
}

// loaded is a checkpoint as a run finds it: untracked channels do not outlive the run that wrote them.
func (p *Program) loaded(c *Checkpoint) *Checkpoint {
	n := c.next()
	for i := range p.state {
		if p.channels[i].rule == ruleUntracked {
			n.cells[i] = cell{}
		}
	}
	return n
}
