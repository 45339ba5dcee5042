package pregel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// checkpointJSON is a Checkpoint as stored: by names, so that it can be read with another version of the graph.
type checkpointJSON struct {
	ID            string                      `json:"id,omitempty"`
	Parent        string                      `json:"parent,omitempty"`
	Source        Source                      `json:"source,omitempty"`
	Step          int                         `json:"step"`
	Seq           int                         `json:"seq"`
	Branch        string                      `json:"branch,omitempty"`
	Digest        string                      `json:"digest,omitempty"`
	Values        map[string]Held             `json:"values,omitempty"`
	Sends         []Send                      `json:"sends,omitempty"`
	Joins         map[string][]string         `json:"joins,omitempty"`
	Finished      []string                    `json:"finished,omitempty"`
	Versions      map[string]int64            `json:"versions,omitempty"`
	Seen          map[string]map[string]int64 `json:"seen,omitempty"`
	InterruptSeen map[string]int64            `json:"interrupt_seen,omitempty"`
	Updated       []string                    `json:"updated,omitempty"`
	HasUpdated    bool                        `json:"has_updated,omitempty"`
	Ran           []string                    `json:"ran,omitempty"` // in a suspended loop only
	// Aside are the places of values that are beside the text, in a [Suspended]: a loop, or the thread that a run hands on to the one that
	// continues it.
	Aside map[string]int `json:"aside,omitempty"`

	sums map[string]*valueDigest // of long values, as far as they are known
}

// recordJSON is a Record as stored.
type recordJSON struct {
	Checkpoint checkpointJSON             `json:"checkpoint"`
	Control    []Command                  `json:"control,omitempty"`
	Line       *string                    `json:"line,omitempty"`
	Asked      *string                    `json:"asked,omitempty"`
	AskedIn    string                     `json:"asked_in,omitempty"`
	Space      string                     `json:"space,omitempty"`
	Anew       bool                       `json:"anew,omitempty"`
	Dropped    []droppedQuestion          `json:"dropped,omitempty"`
	Early      []earlyAnswer              `json:"early,omitempty"`
	Tasks      map[string]*taskRecordJSON `json:"tasks,omitempty"`
}

type taskRecordJSON struct {
	TaskRecord
	Child *recordJSON `json:"child,omitempty"`
}

// threadJSON is a Thread as stored.
type threadJSON struct {
	Head   *recordJSON            `json:"head,omitempty"`
	Memory map[string]*recordJSON `json:"memory,omitempty"`
	// Remembered is what the subgraphs remembered when the head was made, null for what is as in Memory; absent when all is.
	Remembered map[string]*recordJSON `json:"remembered,omitzero"`

	Origin string           `json:"origin,omitempty"`
	Seq    int              `json:"seq"`
	Passed bool             `json:"passed,omitempty"`
	Kept   map[string]Value `json:"kept,omitempty"`
	Left   map[string]Value `json:"left,omitempty"`
	Meter  *Meter           `json:"meter,omitempty"`
}

// EncodeThread writes a thread's state as JSON. Untracked channels are left out: they do not outlive a process.
func (p *Program) EncodeThread(t *Thread) (Value, error) {
	out := p.threadOut(t, false)
	return encodeAround(out.checkpoints, func() ([]byte, error) { return json.Marshal(out) })
}

// threadOut is a thread as it is stored; exact for a suspended loop, with what does not outlive a run. It has copies of the maps that a
// thread changes, and threadIn makes others: a frozen run is never written, and is restored more than once.
func (p *Program) threadOut(t *Thread, exact bool) *threadJSON {
	out := &threadJSON{Origin: t.origin, Seq: t.seq, Passed: t.passed, Kept: maps.Clone(t.kept), Left: t.left, Meter: t.meter.copy(), Memory: map[string]*recordJSON{}}
	if t.Head != nil {
		out.Head = p.recordOut(t.Head, exact)
	}
	for _, key := range sortedKeys(t.memory) {
		if sub, ok := p.byMemoryKey(key); ok {
			out.Memory[key] = sub.recordOut(t.memory[key], exact)
		}
	}
	if !exact { // a suspended loop says it of its own record
		out.Remembered = rememberedOut(p, t)
	}
	return out
}

// DecodeThread reads what EncodeThread wrote. Channels and nodes that the program does not have are dropped.
func (p *Program) DecodeThread(v Value) (*Thread, error) {
	in, err := readThread(p.Spec.Name, v)
	if err != nil {
		return nil, err
	}
	return p.threadIn(in), nil
}

func readThread(graph string, v Value) (*threadJSON, error) {
	in := &threadJSON{}
	if err := json.Unmarshal(v, in); err != nil {
		return nil, fmt.Errorf("graph %q: stored thread state: %w", graph, err)
	}
	return in, nil
}

func (p *Program) threadIn(in *threadJSON) *Thread {
	t := &Thread{origin: in.Origin, seq: in.Seq, passed: in.Passed, kept: maps.Clone(in.Kept), left: in.Left, meter: in.Meter.copy(), memory: map[string]*Record{}}
	for _, key := range sortedKeys(in.Kept) {
		t.filled += len(key) + len(in.Kept[key])
	}
	if in.Head != nil {
		t.Head = p.recordIn(in.Head)
	}
	for _, key := range sortedKeys(in.Memory) {
		if sub, ok := p.byMemoryKey(key); ok && in.Memory[key] != nil {
			t.memory[key] = sub.recordIn(in.Memory[key])
		}
	}
	if t.Head != nil && in.Remembered != nil {
		t.Head.memory = rememberedIn(p, in.Remembered, t.memory)
	}
	return t
}

// rememberedOut is what the subgraphs remembered when the thread's head was made; nil where all is as they remember it now, but for
// what their tasks have done since.
func rememberedOut(p *Program, t *Thread) map[string]*recordJSON {
	if t.Head == nil || t.Head.memory == nil {
		return nil
	}
	out, same := make(map[string]*recordJSON, len(t.Head.memory)), len(t.Head.memory) == len(t.memory)
	for _, key := range sortedKeys(t.Head.memory) {
		sub, known := p.byMemoryKey(key)
		switch then, now := t.Head.memory[key], t.memory[key]; {
		case !known:
		case now != nil && now.Checkpoint.ID == then.Checkpoint.ID:
			out[key] = nil
		default:
			out[key], same = sub.recordOut(then.WithoutTasks(), false), false
		}
	}
	if same {
		return nil
	}
	return out
}

// rememberedIn reads what rememberedOut, or a loop that was suspended, says; now is what the subgraphs remember now.
func rememberedIn(p *Program, in map[string]*recordJSON, now map[string]*Record) map[string]*Record {
	out := make(map[string]*Record, len(in))
	for _, key := range sortedKeys(in) {
		if sub, ok := p.byMemoryKey(key); ok && in[key] != nil {
			out[key] = sub.recordIn(in[key])
		} else if same := now[key]; same != nil {
			out[key] = same
		}
	}
	return out
}

func (p *Program) recordOut(r *Record, exact bool) *recordJSON {
	out := &recordJSON{Checkpoint: p.checkpointOut(r.Checkpoint, exact), Control: r.control, Line: r.line, Asked: r.asked, AskedIn: r.askedIn,
		Space: r.space, Anew: r.anew, Dropped: r.dropped, Early: r.early, Tasks: map[string]*taskRecordJSON{}}
	for _, e := range r.tasks.sorted() {
		path, t := e.path, e.rec
		stored := &taskRecordJSON{TaskRecord: *t}
		if !exact {
			stored.TaskRecord = *p.tracked(t)
		}
		stored.Inner = maps.Clone(t.Inner)
		if t.child != nil {
			if sub := p.nodes[p.nodeAt[t.Node]].sub; sub != nil {
				stored.Child = sub.recordOut(t.child, exact)
			}
		}
		out.Tasks[path] = stored
	}
	return out
}

func (p *Program) recordIn(in *recordJSON) *Record {
	r := &Record{Checkpoint: p.checkpointIn(&in.Checkpoint), control: in.Control, line: in.Line, asked: in.Asked, askedIn: in.AskedIn, space: in.Space,
		anew: in.Anew, dropped: in.Dropped, early: in.Early}
	for _, path := range sortedKeys(in.Tasks) {
		if in.Tasks[path] == nil {
			continue
		}
		t := in.Tasks[path].TaskRecord
		t.Inner = maps.Clone(t.Inner)
		if at, ok := p.nodeAt[t.Node]; ok && in.Tasks[path].Child != nil && p.nodes[at].sub != nil {
			t.child = p.nodes[at].sub.recordIn(in.Tasks[path].Child)
		}
		r.tasks.put(path, &t)
	}
	p.mendHandled(&r.tasks)
	return r
}

func (p *Program) checkpointOut(c *Checkpoint, exact bool) checkpointJSON {
	out := checkpointJSON{
		ID: c.ID, Parent: c.Parent, Source: c.Source, Step: c.Step, Seq: c.Seq, Branch: c.Branch, Digest: c.Digest,
		Values: map[string]Held{}, Joins: map[string][]string{}, Versions: map[string]int64{},
		Seen: map[string]map[string]int64{}, HasUpdated: c.hasUpdated, sums: map[string]*valueDigest{},
	}
	for i := range p.channels {
		p.cellOut(&out, c, i, exact)
	}
	for i := range p.nodes {
		versions := p.seenBy(c, i)
		if versions[0] == unseen {
			continue
		}
		seen := map[string]int64{}
		for at, t := range p.nodes[i].triggers {
			if versions[at] > 0 {
				seen[p.channels[t].name] = versions[at]
			}
		}
		out.Seen[p.nodes[i].name] = seen
	}
	out.InterruptSeen = p.versionsOut(c.interruptSeen)
	for _, i := range c.updated {
		out.Updated = append(out.Updated, p.channels[i].name)
	}
	if exact {
		for _, at := range c.ran {
			out.Ran = append(out.Ran, p.nodes[at].name)
		}
	}
	return out
}

// versionsOut names the channels of versions; nil stays nil.
func (p *Program) versionsOut(versions []int64) map[string]int64 {
	if versions == nil {
		return nil
	}
	out := map[string]int64{}
	for i, v := range versions {
		if v > 0 {
			out[p.channels[i].name] = v
		}
	}
	return out
}

func (p *Program) versionsIn(named map[string]int64) []int64 {
	if named == nil {
		return nil
	}
	out := make([]int64, len(p.channels))
	for i := range p.channels {
		out[i] = named[p.channels[i].name]
	}
	return out
}

func (p *Program) cellOut(out *checkpointJSON, c *Checkpoint, i int, exact bool) {
	ch, s := &p.channels[i], &c.cells[i]
	if c.versions[i] == 0 {
		return
	}
	out.Versions[ch.name] = c.versions[i]
	switch {
	case ch.rule == ruleUntracked && !exact:
	case ch.rule == ruleSends:
		out.Sends = s.sends()
	case ch.rule == ruleJoin || ch.rule == ruleJoinAfter:
		names := []string{}
		for _, source := range s.seen() {
			names = append(names, ch.sources[source])
		}
		out.Joins[ch.name] = names
	case !s.value.IsNone():
		out.Values[ch.name] = s.value
		if s.sum != nil {
			out.sums[ch.name] = s.sum
		}
	}
	if s.finished() {
		out.Finished = append(out.Finished, ch.name)
	}
}

func (p *Program) checkpointIn(in *checkpointJSON) *Checkpoint {
	c := p.emptyCheckpoint()
	c.ID, c.Parent, c.Source, c.Step, c.Seq = in.ID, in.Parent, in.Source, in.Step, in.Seq
	c.Branch, c.Digest, c.hasUpdated = in.Branch, in.Digest, in.HasUpdated
	for i := range p.channels {
		ch, s := &p.channels[i], &c.cells[i]
		version, written := in.Versions[ch.name]
		if !written {
			continue
		}
		c.versions[i] = version
		c.top = max(c.top, version)
		s.value, s.sum = in.Values[ch.name], in.sums[ch.name]
		if ch.rule == ruleTopic && !s.value.IsNone() && !isList(s.value.text) {
			s.value = Held{} // a topic holds a list, and counts on it
		}
		s.setFinished(slices.Contains(in.Finished, ch.name))
		if ch.rule == ruleSends {
			sends := slices.Clone(in.Sends)
			for i := range sends {
				sends[i].Arg = orNull(sends[i].Arg) // without one it would be no Send's task
			}
			s.setSends(sends)
			continue
		}
		var seen []int
		for _, name := range in.Joins[ch.name] {
			if source := slices.Index(ch.sources, name); source >= 0 {
				seen = append(seen, source)
			}
		}
		slices.Sort(seen)
		s.setSeen(slices.Compact(seen))
	}
	for i := range p.nodes {
		stored, ok := in.Seen[p.nodes[i].name]
		if !ok {
			continue
		}
		seen := p.seenBy(c, i)
		for at, t := range p.nodes[i].triggers {
			seen[at] = stored[p.channels[t].name]
		}
	}
	c.interruptSeen = p.versionsIn(in.InterruptSeen)
	for _, name := range in.Ran {
		if at, ok := p.nodeAt[name]; ok {
			c.ran = append(c.ran, at)
		}
	}
	for _, name := range in.Updated {
		if i, ok := p.index[name]; ok {
			c.updated = append(c.updated, i)
		}
	}
	slices.Sort(c.updated)
	return c
}
