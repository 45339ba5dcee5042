package past

import (
	"maps"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Effects collects what the tasks of a thread did outside: it is the [Recorder] of whoever drives the thread in this
// process, or of a replay of one of the thread's runs. Of each effect it keeps the newest state. It is not safe for
// concurrent use.
type Effects struct {
	run  string
	when func(at int64) time.Time
	rows []*EffectRecord // in the order in which they were first heard of
	at   map[string]int
	news int // counts what was heard
	done int // news when an invocation last finished the thread; -1 before
	line presentLine
	// marks say how the thread stood when its two newest invocations began.
	marks []mark
	// makers says who made the checkpoints of the root graph.
	makers map[string]maker
	edited bool // what began last is an update from outside
}

// EffectRecord is one effect of a thread, as far as it got.
type EffectRecord struct {
	ledger.Entry
	// Graph is the path of subgraph names to the graph whose node called it, empty for the root graph.
	Graph []string
	Node  string
	Step  int
	// Run is the run in which it came to this state, "" when that is not known any more, and Time is when.
	Run  string
	Time time.Time

	Place   string // of the task that called it
	before  *stand // of the root graph, when the superstep began in which it was called; nil when that is not known
	undone  bool   // with the run, by a cancellation
	Tried   bool   // to undo it
	undoing bool   // says only what became of its compensation
	settled int    // its place in the order in which effects came to their states
}

// NewEffects returns an Effects of a run. when tells the time of a position in its history.
func NewEffects(run string, when func(at int64) time.Time) *Effects {
	return &Effects{run: run, when: when, at: map[string]int{}, done: -1, line: newPresentLine(), makers: map[string]maker{}}
}

// Stands and Made implement [Standing].
func (e *Effects) Stands(p *pregel.Program, t *pregel.Thread) { e.line.stands(p, t) }

// Made implements [Standing].
func (e *Effects) Made(r *pregel.Record) {
	e.line.made(r)
	e.makes(r)
}

// Within says that what comes next happens in another run.
func (e *Effects) Within(run string) { e.run = run }

// Begins says that an invocation of the thread begins in that run, from where the thread stands.
func (e *Effects) Begins(run string) {
	e.Within(run)
	t := e.line.thread
	if t == nil {
		t = pregel.NewThread()
	}
	e.marked(t)
}

// Began implements [Recorder]. What the thread knows of tasks that earlier runs left is news only when nothing was
// heard of it.
func (e *Effects) Began(_ int64, p *pregel.Program, t *pregel.Thread, _ graphadapter.Durability) {
	before := t
	if now := e.line.thread; now != nil && !sameHead(now, t) {
		before = now // an earlier state was chosen to go on from
	}
	e.marked(before)
	e.stands(p, t)
}

// stands notes where the thread stands, and what it knows of tasks that earlier runs left.
func (e *Effects) stands(p *pregel.Program, t *pregel.Thread) {
	e.line.stands(p, t)
	for _, l := range p.Ledgers(t) {
		for _, entry := range effectsIn(l.Ledger) {
			if _, known := e.at[entry.Key]; !known {
				e.put(&EffectRecord{Entry: entry, Node: l.Node, Step: l.Step, Place: l.Place})
			}
		}
	}
}

// Continued implements [Recorder].
func (e *Effects) Continued(_ int64, p *pregel.Program, t *pregel.Thread, _ graphadapter.Durability, _ pregel.Status, _ string) {
	e.stands(p, t)
}

// Happened implements [Recorder].
func (e *Effects) Happened(at int64, ev pregel.Event) {
	if ev.Kind == pregel.EventCheckpoint && ev.Namespace == "" {
		e.Made(ev.Checkpoint)
	}
	if ev.Kind != pregel.EventLedger {
		return
	}
	stored, _ := graphadapter.DecodeLedger(ev.Value) // one that cannot be read tells of none
	tried := ledger.UndosBegun(stored)
	for _, entry := range effectsIn(ev.Value) {
		r := EffectRecord{Entry: entry, Step: ev.Step, Run: e.run, Time: e.when(at), undoing: ev.Task == nil, Tried: tried[entry.Key]}
		if ev.Task != nil {
			r.Graph, r.Node, r.Place = ev.Task.Graph, ev.Task.Node, ev.Task.Place()
		}
		e.put(&r)
	}
}

// Edited implements [Recorder]: an update from outside does nothing to the outside.
func (e *Effects) Edited(_ int64, namespace string, r *pregel.Record) {
	if namespace == "" {
		e.Made(r)
	}
	e.edited = true
}

// Ended implements [Recorder].
func (e *Effects) Ended(_ int64, s pregel.Status, t *pregel.Thread) {
	if s == pregel.StatusDone {
		e.done = e.news
	}
	if t != nil {
		e.line.stands(e.line.program, t)
	}
	if e.edited = e.edited && t != nil; e.edited {
		e.marked(t) // an update is not taken back with what follows
		e.edited = false
	}
}

// UnderWay adds what a task has recorded that has not come back yet.
func (e *Effects) UnderWay(node string, step int, stored pregel.Value, since time.Time) {
	for _, entry := range effectsIn(stored) {
		e.put(&EffectRecord{Entry: entry, Node: node, Step: step, Run: e.run, Time: since})
	}
}

// put takes in the news of an effect. A task that comes back again tells once more what it told before, which is no
// news; and what was undone stays so, whatever an old ledger says.
func (e *Effects) put(r *EffectRecord) {
	e.news++
	r.settled = e.news
	i, known := e.at[r.Key]
	if !known {
		if r.before == nil {
			r.before = e.line.head
		}
		e.at[r.Key] = len(e.rows)
		e.rows = append(e.rows, r)
		return
	}
	old := e.rows[i]
	if !r.undoing && r.Place != "" && !e.line.has(old.before) {
		old.before = e.line.head // it was left, and the thread has come to it again
	}
	r.before, r.undone, r.Tried = old.before, r.undone || old.undone, r.Tried || old.Tried // a later run may have undone it
	old.Tried = r.Tried
	if r.Place == "" {
		r.Place = old.Place
	}
	switch {
	case old.State == ledger.StateCompensated:
		return
	case old.State == r.State && old.Attempts == r.Attempts && old.Evidence == r.Evidence:
		return
	case r.undoing:
		entry := old.Entry
		entry.State, entry.Evidence = r.State, r.Evidence
		r.Tried = old.Tried || r.Attempts > 0
		r.undone = r.State == ledger.StateCompensated
		r.Entry, r.Graph, r.Node, r.Step, r.undoing = entry, old.Graph, old.Node, old.Step, false
	}
	if r.Params == nil { // a ledger that is too large is cut
		r.Params, r.ParamsHash = old.Params, old.ParamsHash
	}
	if old.State == ledger.StateCommitted && r.State == ledger.StateCommitted {
		r.settled = old.settled // its receipt is as old as it was
	}
	e.rows[i] = r
}

// Continue takes in the effects of the thread's next run.
func (e *Effects) Continue(next *Effects) {
	before, stood := e.news, e.line.head
	for _, r := range next.rows {
		if r.before.is(stood) {
			r.before = stood.goneOn(r.before)
		}
		if _, known := e.at[r.Key]; known && r.Run == "" {
			continue // that run only carried it on
		}
		e.put(r)
		if i := e.at[r.Key]; e.rows[i] == r {
			r.settled += before
		}
	}
	e.followed(next.marks, before)
	e.news = before + next.news
	if next.done >= 0 {
		e.done = before + next.done
	}
	e.line.goOn(&next.line)
	for _, id := range slices.Sorted(maps.Keys(next.makers)) {
		if _, known := e.makers[id]; !known {
			e.makers[id] = next.makers[id]
		}
	}
	e.run, e.when = next.run, next.when
}

// Finished reports whether an invocation finished the thread.
func (e *Effects) Finished() bool { return e.done >= 0 }

// All returns the thread's effects, in the order in which they were begun.
func (e *Effects) All() []EffectRecord {
	out := make([]EffectRecord, len(e.rows))
	for i, r := range e.rows {
		out[i] = *r
	}
	return out
}

// Standing returns the effects that are made, or may be, since the thread last finished: those whose receipt is the
// newest first.
func (e *Effects) Standing() []EffectRecord {
	var out []EffectRecord
	for _, r := range e.rows {
		if made(r) && r.settled > e.done {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b EffectRecord) int { return b.settled - a.settled })
	return out
}

// effectsIn returns the effects of a stored ledger. One that cannot be read tells nothing here: the task that it is of
// refuses it.
func effectsIn(stored pregel.Value) []ledger.Entry {
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(entries, func(e ledger.Entry) bool { return e.Kind != ledger.KindEffect })
}
