package pregel

import (
	"cmp"
	"maps"
	"strings"
)

// Thread is the durable state of one thread: its newest checkpoint with what is known of the tasks it led to, and what
// its subgraphs remember. It belongs to one [Loop] at a time.
type Thread struct {
	// Head is the newest record, nil before the first input.
	Head *Record

	origin string             // see Begin; "" until then
	memory map[string]*Record // of subgraphs with MemoryThread, by their node path
	kept   map[string]Value   // under thread-wide keys, whatever the checkpoint
	filled int                // bytes of kept, keys included
	left   map[string]Value   // see CarryLedgers; it is replaced, never changed
	meter  *Meter             // nil without a budget; whatever the checkpoint
	seq    int
	passed bool // Head is not the newest checkpoint any more: what goes on from it is a line of its own
}

// NewThread returns the state of a thread that never ran.
func NewThread() *Thread { return &Thread{memory: map[string]*Record{}} }

// Begin gives a thread its origin, which no other thread has, not even one that begins under the same id after this one was erased. The
// keys of what its tasks do outside and the ids of messages that come without one contain it. A thread with an origin keeps it. A thread
// that was forked or copied from another thread has none until Begin.
func (t *Thread) Begin(origin string) *Thread {
	t.origin = cmp.Or(t.origin, origin)
	return t
}

// At returns a thread that starts from a record of this one, the newest or an earlier one: later checkpoints get higher
// sequence numbers than any of t. Both threads may then go on independently. answers says that it is to take answers: its
// subgraphs then remember what they do now (LangGraph's rule); else they remember what they did when the record was made,
// but for the newest record of a thread that is edited.
func (t *Thread) At(r *Record, use Use) *Thread {
	passed := t.Head == nil || r.Checkpoint.ID != t.Head.Checkpoint.ID
	remembered := r.memory
	if remembered == nil || use == ForAnswers || use == ForEdit && !passed {
		remembered = t.memory // a record that was stored has forgotten what was remembered then
	}
	return &Thread{Head: r.clone(), memory: cloneRecords(remembered), kept: maps.Clone(t.kept), filled: t.filled, origin: t.origin, seq: t.seq,
		passed: passed, meter: t.meter.copy()}
}

// Use says what a thread is wanted for that starts from one of its checkpoints.
type Use int

// The uses of an earlier state.
const (
	// ForReplay: the tasks after it run again.
	ForReplay Use = iota
	// ForAnswers: questions that its tasks asked are answered, perhaps not for the first time.
	ForAnswers
	// ForEdit: it is updated from outside.
	ForEdit
)

// UseFor is what a run with that input wants the state for.
func UseFor(in Input) Use {
	if in.Resume != nil {
		return ForAnswers
	}
	return ForReplay
}

// AsNewest makes Head the thread's newest checkpoint: it begins a thread of its own, with the same budget and nothing spent, and without
// its origin.
func (t *Thread) AsNewest() *Thread {
	t.passed, t.meter, t.origin = false, t.meter.anew(), ""
	return t
}

// AsCopy makes Head the newest checkpoint of a thread that is copied from the one of that id, and stands where that one stood: see
// AsNewest. Its questions keep their ids; a task that has asked runs again from its beginning when it is answered, as in any thread,
// and what it did outside before it asked was the other thread's.
func (t *Thread) AsCopy(from string) *Thread {
	if t.Head != nil {
		t.Head.copied(from)
	}
	for _, key := range sortedKeys(t.memory) {
		t.memory[key].copied(from)
	}
	return t.AsNewest()
}

// After makes t, an earlier state of a thread, number its checkpoints on from newest, the thread as it is now: then no
// two checkpoints of the thread have one id. What the thread keeps under thread-wide keys, and what it spent, is no part of a state.
func (t *Thread) After(newest *Thread) {
	t.passed = t.passed || t.Head != nil && newest.Head != nil && t.Head.Checkpoint.ID != newest.Head.Checkpoint.ID
	t.seq = max(t.seq, newest.seq)
	t.kept, t.filled, t.meter, t.origin = maps.Clone(newest.kept), newest.filled, newest.meter.copy(), newest.origin
}

// Newer returns a thread's state after an invocation went on from after, an earlier state of the thread: after, or before when
// the invocation made no checkpoint. The newest checkpoint is a thread's state (LangGraph's rule). What the thread
// keeps under thread-wide keys, and what it spent, is as the invocation left it either way.
func Newer(before, after *Thread) *Thread {
	if before.Head != nil && after.Head != nil && after.Head.Checkpoint.Seq < before.Head.Checkpoint.Seq {
		before.kept, before.filled, before.meter, before.origin = maps.Clone(after.kept), after.filled, after.meter.copy(), after.origin
		return before
	}
	return after
}

// newBranch names a line of the thread that begins now.
func (t *Thread) newBranch() string { return "b" + itoa(t.seq+1) }

// nothing is what subgraphs that never ran remember; it is not written to.
var nothing = map[string]*Record{}

// remembered is what subgraphs remember at this moment, for a replay from here.
func (t *Thread) remembered() map[string]*Record {
	if len(t.memory) == 0 {
		return nothing
	}
	return maps.Clone(t.memory)
}

// Copy returns a thread that may go on independently of t: to try what must not half happen.
func (t *Thread) Copy() *Thread {
	c := &Thread{Head: t.Head, memory: cloneRecords(t.memory), kept: maps.Clone(t.kept), filled: t.filled, left: t.left,
		origin: t.origin, seq: t.seq, passed: t.passed, meter: t.meter.copy()}
	if t.Head != nil {
		c.Head = t.Head.clone()
	}
	return c
}

// Drop forgets the superstep under way: the writes, questions, answers and ledgers of its tasks since the newest
// checkpoint, subgraphs within them included. The next run begins the superstep anew. What is kept under thread-wide keys
// stays. A subgraph that remembers goes back to what it remembered at the checkpoint, and begins with its input. No loop may have the
// thread.
func (p *Program) Drop(t *Thread) {
	if t.Head == nil {
		return
	}
	head := *t.Head
	head.tasks = taskRecords{}
	remembered := t.memory
	if head.memory != nil {
		remembered = head.memory
	}
	t.memory = begunAnew(remembered)
	t.Head = &head
}

// begunAnew is what subgraphs remember when what they have done since is taken back.
func begunAnew(remembered map[string]*Record) map[string]*Record {
	out := make(map[string]*Record, len(remembered))
	for _, key := range sortedKeys(remembered) {
		out[key] = remembered[key].WithoutTasks()
		out[key].anew = true
	}
	return out
}

func cloneRecords(records map[string]*Record) map[string]*Record {
	out := make(map[string]*Record, len(records))
	for _, key := range sortedKeys(records) {
		out[key] = records[key].clone()
	}
	return out
}

// renewal separates a branch's name from what a renewal appends: "b3~7" and "b3~7~9" renew "b3".
const renewal = '~'

// Renew makes what runs next on a thread new to everybody outside: its tasks get keys that no task of the thread had
// before, as on a branch. The branch's name says what it renews: see [Renewals].
func (t *Thread) Renew() {
	if t.Head == nil {
		return
	}
	t.seq++ // or a branch that is made at this point later would have the same keys
	c := *t.Head.Checkpoint
	c.Branch = renewed(t.Head.branch(), t.seq)
	r := *t.Head
	r.Checkpoint, r.line, r.asked, r.dropped, r.early = &c, nil, nil, nil, nil
	t.Head = &r
}

func renewed(branch string, seq int) string { return branch + string(renewal) + itoa(seq) }

// Renewals returns the branch that was renewed to be this one, and what each renewal has added to its name, the oldest
// first: of "b3~7~9" they are "b3" and "~7", "~7~9".
func Renewals(branch string) (line string, renewals []string) {
	line, added, _ := strings.Cut(branch, string(renewal))
	for at := range len(added) {
		if added[at] == renewal {
			renewals = append(renewals, string(renewal)+added[:at])
		}
	}
	if added != "" {
		renewals = append(renewals, string(renewal)+added)
	}
	return line, renewals
}

// Rewind puts a thread back to earlier, a state of the thread that [Thread.At] returned: what the thread did since has
// been taken back, so none of that may count. A copy of that checkpoint becomes the thread's newest, with the same
// superstep and values; the others stay what happened before it. What runs next has new keys, as after Renew. What the
// thread keeps under thread-wide keys, and the ledgers of CarryLedgers, stay.
func (p *Program) Rewind(t, earlier *Thread) *Record {
	from := earlier.Head.Checkpoint
	t.seq++
	c := p.loaded(from)
	c.updated, c.hasUpdated, c.Branch = nil, false, renewed(earlier.Head.branch(), t.seq)
	p.seal(c, from, "", SourceFork, from.Step, t.seq)
	c.Parent = from.Parent
	t.Head, t.memory = &Record{Checkpoint: c, control: earlier.Head.control}, begunAnew(earlier.memory)
	t.Head.memory = t.remembered()
	return t.Head
}

// TakeBack puts a thread back to earlier, a copy of it from when an invocation began: with the checkpoint, questions, answers and
// finished tasks of then. renewed says that writes outside of the invocation were undone: what runs next has new keys then, as after
// Renew, but for calls that an earlier execution of a task has made, and questions keep their ids. What the thread keeps under
// thread-wide keys, and what it spent, stays.
func (t *Thread) TakeBack(p *Program, earlier *Thread, renewed bool) {
	back := earlier.Copy()
	back.After(t)
	if renewed {
		back.renewTasks(p)
	}
	*t = *back
}

// renewTasks gives the tasks that run next other keys, and leaves what is known of them.
func (t *Thread) renewTasks(p *Program) {
	t.seq++ // or a branch that is made at this point later would have the same keys
	head := t.Head
	if head == nil {
		head = &Record{Checkpoint: p.emptyCheckpoint()}
	}
	r := *head
	line, asked := renewed(head.branch(), t.seq), head.askedBranch()
	r.line, r.asked = &line, &asked
	t.Head = &r
}

// CarryLedgers gives a thread ledgers for going on from an earlier state, or on a renewed branch: of what earlier tasks did outside
// and nobody undid, by [Task.Place]. The tasks at those places begin with them. New input, an update from outside and the end
// of the run drop them.
func (t *Thread) CarryLedgers(ledgers map[string]Value) { t.left = ledgers }

// CarriedLedgers returns the ledgers that CarryLedgers has given and nothing has dropped yet. The map must not be changed.
func (t *Thread) CarriedLedgers() map[string]Value { return t.left }

// Place is the task's Key without the renewals of its branch: the same each time that the thread runs the task again after it was
// put back.
func (t *Task) Place() string {
	line, renewals := Renewals(t.Branch)
	if len(renewals) == 0 {
		return t.Key()
	}
	there := *t
	there.Branch, there.key = line, ""
	return there.Key()
}
