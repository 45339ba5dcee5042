// Package past puts together what a thread's runs tell of it: its checkpoints ([Past]), and what its tasks did outside
// ([Effects]).
package past

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Past collects a thread's checkpoints: it is the [Recorder] of whoever drives the thread in this process, or of replays
// of the thread's runs, the oldest first. It keeps what LangGraph keeps (section 5.9 of the semantics): every checkpoint,
// or in [DurabilityExit] the last one of each invocation. It is not safe for concurrent use.
type Past struct {
	// Clock says when the position of a report was, zero for not known; nil knows no times. Whoever records several runs sets
	// it for each.
	Clock func(at int64) time.Time
	// Run is the run that is recorded, "" when nobody said; whoever records several runs sets it for each.
	Run     string
	at      int64 // the position of the newest report
	program *pregel.Program
	thread  *pregel.Thread
	status  pregel.Status // StatusRunning while an invocation is under way
	exit    bool
	base    string         // the checkpoint at which the invocation began
	asBegun *pregel.Record // in exit mode: its record before the invocation's command, nil when that is not known
	head    *pregel.Record // the thread's newest record as last seen
	spaces  map[string]*line
	skipped map[string]skipped // in exit mode: of each subgraph
}

// skipped are the checkpoints that a subgraph made in an invocation in exit mode: the last, and the one before the first.
type skipped struct {
	last *pregel.Record
	base string
}

// line are the checkpoints of one run of a graph of the thread, oldest first.
type line struct {
	nodes []string // that it is nested in, as far as the run was recorded
	kept  []*kept
	byID  map[string]*kept
}

type kept struct {
	program *pregel.Program
	made    *pregel.Record // as it was made; nil when only a state read back from storage told of it
	when    time.Time      // it was made; zero when that is not known
	run     string         // that made it
	now     *pregel.Record // with what is known of its tasks
}

// Checkpoint is one checkpoint of a thread's history, with what made it.
type Checkpoint struct {
	*pregel.Snapshot
	// Ran are the nodes whose writes made it, Wrote the channels that were written; empty when the run that made it is not
	// known any more.
	Ran, Wrote []string
	// When is when it was made, zero when that is not known. Those that one activity made have the time of its end.
	When time.Time
	// Run is [Past.Run] as the checkpoint was made, "" when that is not known.
	Run string
}

// NewPast returns a Past without checkpoints.
func NewPast() *Past { return &Past{spaces: map[string]*line{}} }

// Began implements [Recorder].
func (p *Past) Began(at int64, program *pregel.Program, t *pregel.Thread, d graphadapter.Durability) {
	p.program, p.thread, p.exit, p.at = program, t, d == graphadapter.DurabilityExit, at
	p.base, p.head, p.skipped, p.status = idOf(t.Head), t.Head, map[string]skipped{}, pregel.StatusRunning
	p.asBegun = nil
	if t.Head != nil {
		p.learn("", t.Head)
		p.asBegun = t.Head.WithoutTasks()
	}
}

// Continued implements [Recorder]. What earlier runs told stays; the thread has been read back from storage.
func (p *Past) Continued(_ int64, program *pregel.Program, t *pregel.Thread, d graphadapter.Durability, s pregel.Status, base string) {
	p.program, p.thread, p.exit, p.status = program, t, d == graphadapter.DurabilityExit, s
	p.base, p.head, p.asBegun = base, t.Head, nil
	if p.skipped == nil {
		p.skipped = map[string]skipped{}
	}
	if t.Head != nil {
		p.learn("", t.Head)
	}
}

func idOf(r *pregel.Record) string {
	if r == nil {
		return ""
	}
	return r.Checkpoint.ID
}

// Happened implements [Recorder].
func (p *Past) Happened(at int64, e pregel.Event) {
	p.at = at
	p.follow()
	if e.Kind != pregel.EventCheckpoint {
		return
	}
	p.line(e.Namespace).nodes = e.Nodes
	switch {
	case p.exit && e.Namespace != "":
		made, again := p.skipped[e.Namespace]
		if !again {
			made.base = e.Checkpoint.Checkpoint.Parent
		}
		made.last = e.Checkpoint
		p.skipped[e.Namespace] = made
	case !p.exit:
		p.add(e.Namespace, e.Checkpoint)
	}
}

// Observer records what happens, and tells another observer too.
func (p *Past) Observer(also pregel.Observer) pregel.Observer {
	return func(e pregel.Event) {
		p.Happened(0, e)
		if also != nil {
			also(e)
		}
	}
}

// Edited implements [Recorder].
func (p *Past) Edited(at int64, namespace string, r *pregel.Record) {
	p.at = at
	p.add(namespace, r)
	p.head = p.thread.Head
}

// Ended implements [Recorder]. The checkpoint that an invocation in exit mode leaves behind has the one it began at as its
// parent.
func (p *Past) Ended(at int64, s pregel.Status, t *pregel.Thread) {
	p.status, p.at = s, at
	if p.thread == nil {
		return
	}
	p.follow()
	p.leave()
	p.thread, p.head = t, t.Head
}

// leave keeps what an invocation in exit mode leaves behind.
func (p *Past) leave() {
	if !p.exit {
		return
	}
	head := p.thread.Head
	if idOf(head) != p.base {
		p.forgetCommand()
		head.Checkpoint = head.Checkpoint.WithParent(p.base)
		p.add("", head)
	}
	for _, space := range slices.Sorted(maps.Keys(p.skipped)) {
		made := p.skipped[space]
		made.last.Checkpoint = made.last.Checkpoint.WithParent(made.base)
		p.add(space, made.last)
	}
	p.base, p.skipped = idOf(head), map[string]skipped{}
}

// forgetCommand takes a command from the checkpoint where the invocation began and from which it has gone on: what the
// command wrote is in the checkpoint that is kept (LangGraph's rule for durability exit).
func (p *Past) forgetCommand() {
	if k, known := p.line("").byID[p.base]; known && p.asBegun != nil {
		k.now = k.now.WithCommandsOf(p.asBegun)
	}
}

// follow notices that the newest checkpoint has another record: a replay forgets what its tasks did before.
func (p *Past) follow() {
	if p.thread == nil || p.thread.Head == p.head {
		return
	}
	p.head = p.thread.Head
	if known, ok := p.line("").byID[p.head.Checkpoint.ID]; ok {
		known.now = p.head
	}
}

// learn takes in a record that was not made here and now: it knows more of its tasks than an earlier one.
func (p *Past) learn(space string, r *pregel.Record) {
	l := p.line(space)
	if known, ok := l.byID[r.Checkpoint.ID]; ok {
		known.now = r
		return
	}
	l.insert(&kept{program: p.program, now: r})
}

// add takes in a record that was made just now.
func (p *Past) add(space string, r *pregel.Record) {
	l := p.line(space)
	if known, ok := l.byID[r.Checkpoint.ID]; ok {
		known.made, known.now, known.run = r, r, p.Run
		if known.when.IsZero() {
			known.when = p.now()
		}
		return
	}
	l.insert(&kept{program: p.program, made: r, now: r, when: p.now(), run: p.Run})
}

// now is when what is reported happened.
func (p *Past) now() time.Time {
	if p.Clock == nil {
		return time.Time{}
	}
	return p.Clock(p.at)
}

// When is when a checkpoint of the root graph was made; zero when that is not known.
func (p *Past) When(checkpoint string) time.Time {
	if k, ok := p.line("").byID[checkpoint]; ok {
		return k.when
	}
	return time.Time{}
}

// insert puts a checkpoint where it was made.
func (l *line) insert(k *kept) {
	at := len(l.kept)
	for at > 0 && l.kept[at-1].now.Checkpoint.Seq > k.now.Checkpoint.Seq {
		at--
	}
	l.kept = slices.Insert(l.kept, at, k)
	l.byID[k.now.Checkpoint.ID] = k
}

func (p *Past) line(space string) *line {
	l, ok := p.spaces[space]
	if !ok {
		l = &line{byID: map[string]*kept{}}
		p.spaces[space] = l
	}
	return l
}

func (k *kept) record() *pregel.Record {
	if k.made == nil || k.made == k.now {
		return k.now
	}
	return k.made.Join(k.now)
}

// Stands says that the thread stands there again: what was begun came to nothing.
func (p *Past) Stands(t *pregel.Thread) { p.thread = t }

// Thread returns the thread as it is now, and the program that reads it; nil before anything began.
func (p *Past) Thread() (*pregel.Program, *pregel.Thread) { return p.program, p.thread }

// Status is where the newest invocation stands, StatusRunning while it is under way.
func (p *Past) Status() pregel.Status { return p.status }

// At returns the thread as it starts again from a checkpoint of the root graph, for that use; false when there is none
// with that id.
func (p *Past) At(checkpoint string, use pregel.Use) (*pregel.Thread, bool) {
	k, ok := p.line("").byID[checkpoint]
	if !ok {
		return nil, false
	}
	return p.thread.At(k.record(), use), true
}

// Leave returns the thread that another one begins with: as it starts again from a checkpoint of the root graph, or, with asCopy, as
// it stood there, for a copy of the thread of that id. It is false when there is no such checkpoint.
func (p *Past) Leave(checkpoint string, asCopy bool, id string) (*pregel.Thread, bool) {
	if asCopy {
		t, ok := p.At(checkpoint, pregel.ForAnswers)
		if !ok {
			return nil, false
		}
		return t.AsCopy(id), true
	}
	t, ok := p.At(checkpoint, pregel.ForReplay)
	if !ok {
		return nil, false
	}
	p.program.Drop(t) // what tasks did behind the checkpoint is this thread's alone: the other one runs them itself
	return t.AsNewest(), true
}

// Newest is the id of the newest checkpoint of the root graph that is kept, "" for none.
func (p *Past) Newest() string {
	kept := p.line("").kept
	if len(kept) == 0 {
		return ""
	}
	return kept[len(kept)-1].now.Checkpoint.ID
}

// Until returns the past of a thread that begins with a checkpoint of the root graph: what was made up to there, on all branches.
// Without such a checkpoint it is empty. Both may go on independently.
func (p *Past) Until(checkpoint string) *Past {
	out := NewPast()
	out.program, out.thread, out.status = p.program, p.thread, p.status
	last, ok := p.line("").byID[checkpoint]
	if !ok {
		return out
	}
	for _, space := range slices.Sorted(maps.Keys(p.spaces)) {
		for _, k := range p.spaces[space].kept {
			if k.now.Checkpoint.Seq <= last.now.Checkpoint.Seq {
				own := *k
				out.line(space).insert(&own)
				out.line(space).nodes = p.spaces[space].nodes
			}
		}
	}
	return out
}

// Made reports whether a checkpoint of the root graph was made in what was recorded, not only read back from storage.
func (p *Past) Made(checkpoint string) bool {
	k, ok := p.line("").byID[checkpoint]
	return ok && k.made != nil
}

// Snapshot shows a checkpoint of the root graph; false when there is none with that id.
func (p *Past) Snapshot(checkpoint string) (*pregel.Snapshot, bool, error) {
	k, ok := p.line("").byID[checkpoint]
	if !ok {
		return nil, false, nil
	}
	s, err := k.program.Snapshot(p.thread, k.record(), false)
	return s, true, err
}

// History returns the checkpoints of the root graph, or of the subgraph that is under way in the tasks of the nodes of
// that path, newest first: of one that remembers, those of its earlier runs too. Errors: *pregel.InvalidUpdateError when
// there is no such subgraph.
func (p *Past) History(path []string) ([]Checkpoint, error) { return p.HistoryAt(path, "") }

// HistoryAt is History with the subgraph that was under way at a checkpoint of the root graph; "" means now.
func (p *Past) HistoryAt(path []string, checkpoint string) ([]Checkpoint, error) {
	if p.thread == nil {
		return nil, nil
	}
	space, newest, sub := "", "", p.program
	if len(path) > 0 {
		at := p.thread
		if checkpoint != "" {
			var known bool
			if at, known = p.At(checkpoint, pregel.ForAnswers); !known {
				return nil, &pregel.InvalidUpdateError{Graph: p.program.Spec.Name, Message: fmt.Sprintf("there is no checkpoint %q", checkpoint)}
			}
		}
		var err error
		if sub, space, newest, err = p.program.SubgraphAt(at, path); err != nil {
			return nil, err
		}
	}
	all := p.line(space).kept
	switch {
	case len(path) == 0:
	case sub.Spec.Memory == pregel.MemoryThread:
		all = p.runsOf(space, path)
	default:
		all = p.line(space).runOf(newest)
	}
	out := make([]Checkpoint, 0, len(all))
	for _, k := range slices.Backward(all) {
		program := sub
		if space == "" {
			program = k.program
		}
		s, err := program.Snapshot(p.thread, k.record(), false)
		if err != nil {
			return nil, err
		}
		c := Checkpoint{Snapshot: s, When: k.when, Run: k.run}
		if k.made != nil {
			c.Ran, c.Wrote = program.Made(k.made)
		}
		out = append(out, c)
	}
	return out, nil
}

// runOf are the checkpoints of the run of a subgraph that has made that one, oldest first. A task of the same name on another branch of
// the thread runs its subgraph in the same namespace.
func (l *line) runOf(checkpoint string) []*kept {
	begun := l.begun(checkpoint)
	return slices.DeleteFunc(slices.Clone(l.kept), func(k *kept) bool { return l.begun(k.now.Checkpoint.ID) != begun })
}

// begun is the first checkpoint that is kept on the way back from one.
func (l *line) begun(checkpoint string) string {
	for k, ok := l.byID[checkpoint]; ok; k, ok = l.byID[k.now.Checkpoint.Parent] {
		checkpoint = k.now.Checkpoint.ID
	}
	return checkpoint
}

// runsOf are the checkpoints of all runs of the subgraph at that path, of which space is the one under way, oldest first.
func (p *Past) runsOf(space string, path []string) []*kept {
	runs := line{byID: map[string]*kept{}}
	for _, name := range slices.Sorted(maps.Keys(p.spaces)) {
		if l := p.spaces[name]; name == space || slices.Equal(l.nodes, path) {
			for _, k := range l.kept {
				runs.insert(k)
			}
		}
	}
	return runs.kept
}

// WritesOf turns a JSON object of channels into the writes of an update, in the order of their names. To a channel with a
// reducer the value {"__overwrite__": v} sets v instead of being reduced into what is there. null gives no writes. A function's object is
// any JSON: what it is to have returned and kept.
func WritesOf(spec *pregel.Spec, object pregel.Value) ([]pregel.Write, error) {
	if pregel.IsNull(object) {
		return nil, nil
	}
	if spec.Function {
		return pregel.FunctionWrites(object, object), nil
	}
	reduces := map[string]bool{}
	for _, ch := range spec.Channels {
		reduces[ch.Name] = ch.Kind == pregel.KindReduce
	}
	var fields map[string]pregel.Value
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("the values of an update must be a JSON object of channels: %w", err)
	}
	writes := make([]pregel.Write, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		w := pregel.Write{Channel: name, Value: fields[name]}
		if inner, ok := pregel.Overwritten(fields[name]); ok && reduces[name] {
			w.Value, w.Overwrite = inner, true
		}
		writes = append(writes, w)
	}
	return writes, nil
}
