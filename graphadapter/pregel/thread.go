package pregel

import (
	"maps"
	"strings"
)

// Thread is the durable state of one thread: its newest checkpoint with what is known of the tasks it led to, and what
// its subgraphs remember. It belongs to one [Loop] at a time.
type Thread struct {
	// Head is the newest record, nil before the first input.
	Head *Record

	memory map[string]*Record // of subgraphs with MemoryThread, by their node path
	kept   map[string]Value   // under thread-wide keys, whatever the checkpoint
	filled int                // bytes of kept, keys included
	left   map[string]Value   // see SetLeft; it is replaced, never changed
	seq    int
	passed bool // Head is not the newest checkpoint any more: what goes on from it is a line of its own
}

// NewThread returns the state of a thread that never ran.
func NewThread() *Thread { return &Thread{memory: map[string]*Record{}} }

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
	return &Thread{Head: r.clone(), memory: cloneRecords(remembered), kept: maps.Clone(t.kept), filled: t.filled, seq: t.seq,
		passed: passed}
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

// AsNewest makes Head the thread's newest checkpoint: it begins a thread of its own.
func (t *Thread) AsNewest() *Thread {
	t.passed = false
	return t
}

// After makes t, an earlier state of a thread, number its checkpoints on from newest, the thread as it is now: then no
// two checkpoints of the thread have one id. What the thread keeps under thread-wide keys is no part of a state.
func (t *Thread) After(newest *Thread) {
	t.passed = t.passed || t.Head != nil && newest.Head != nil && t.Head.Checkpoint.ID != newest.Head.Checkpoint.ID
	t.seq = max(t.seq, newest.seq)
	t.kept, t.filled = maps.Clone(newest.kept), newest.filled
}

// Newer returns where a thread stands after an invocation went on with after, an earlier state of it: there, or where it
// stood before when no checkpoint was made. The newest checkpoint is a thread's state (LangGraph's rule). What the thread
// keeps under thread-wide keys is as the invocation left it either way.
func Newer(before, after *Thread) *Thread {
	if before.Head != nil && after.Head != nil && after.Head.Checkpoint.Seq < before.Head.Checkpoint.Seq {
		before.kept, before.filled = maps.Clone(after.kept), after.filled
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
		seq: t.seq, passed: t.passed}
	if t.Head != nil {
		c.Head = t.Head.clone()
	}
	return c
}

// Drop forgets the superstep under way: what its tasks wrote, asked, were told and have in their ledgers since the newest
// checkpoint, subgraphs within them included. The next run begins the superstep anew. What is kept under thread-wide keys
// stays. A subgraph that remembers goes back to what it remembered at the checkpoint; read back from storage a thread does
// not know that, and the subgraph goes on from its own newest checkpoint. No loop may have the thread.
func (p *Program) Drop(t *Thread) {
	if t.Head == nil {
		return
	}
	head := *t.Head
	head.tasks = taskRecords{}
	if head.memory != nil {
		t.memory = cloneRecords(head.memory)
	}
	for _, key := range sortedKeys(t.memory) {
		record := *t.memory[key]
		record.tasks = taskRecords{}
		t.memory[key] = &record
	}
	t.Head = &head
}

func cloneRecords(records map[string]*Record) map[string]*Record {
	out := make(map[string]*Record, len(records))
	for _, key := range sortedKeys(records) {
		out[key] = records[key].clone()
	}
	return out
}

// Record is a checkpoint and what has happened since: control writes from outside, and the tasks that it led to.
type Record struct {
	Checkpoint *Checkpoint
	control    []Command
	tasks      taskRecords
	memory     map[string]*Record // the root's: what its subgraphs remembered when this was made
	// line is the branch that its tasks have in their keys, when not the checkpoint's; asked the one in the ids of their
	// questions, when not that: an answer finds its question by the id under which it was asked.
	line, asked *string
	// space is the namespace that its tasks have, of a subgraph that remembers: it may go on in another superstep of the
	// graph around it, where its tasks are the same as before.
	space string
	// dropped are the questions that the update dropped which made this record, early the answers to them.
	dropped []droppedQuestion
	early   []earlyAnswer
}

func (r *Record) clone() *Record {
	c := r.Bare()
	for _, e := range r.tasks.sorted() {
		path, rec := e.path, e.rec
		t := *rec
		if t.child != nil {
			t.child = t.child.clone()
		}
		t.Inner = maps.Clone(t.Inner)
		c.tasks.put(path, &t)
	}
	return c
}

// Bare is the record without its tasks.
func (r *Record) Bare() *Record {
	return &Record{Checkpoint: r.Checkpoint, control: r.control, memory: r.memory, line: r.line, asked: r.asked, space: r.space,
		dropped: r.dropped, early: r.early}
}

// WithCommandsOf returns the record with the commands that wait on another record of the same checkpoint.
func (r *Record) WithCommandsOf(other *Record) *Record {
	c := *r
	c.control = other.control
	return &c
}

// branch is the one that the keys of its tasks have.
func (r *Record) branch() string {
	if r.line != nil {
		return *r.line
	}
	return r.Checkpoint.Branch
}

// Join returns a record that knows what r knew when it was made and what a later record of the same checkpoint, read
// back from storage, has found out since about the tasks that the checkpoint led to.
func (r *Record) Join(later *Record) *Record {
	joined := later.Bare()
	joined.Checkpoint, joined.memory, joined.tasks = r.Checkpoint, r.memory, later.tasks
	return joined
}

// TaskRecord is what is known of one task of a checkpoint.
type TaskRecord struct {
	Node string `json:"node"`
	// Done says that the task finished: Command and Routes are its result, and it never runs again.
	Done bool `json:"done,omitempty"`
	Command
	Routes []Target `json:"routes,omitempty"`
	// Questions are those it asked when it last ran; they stay listed once answered.
	Questions []Question `json:"questions,omitempty"`
	Answers   []Answer   `json:"answers,omitempty"`
	// Error is its last failure; it stays listed when a later execution succeeds.
	Error *NodeError `json:"error,omitempty"`
	// Handled says that the failure went to the node's error handler, whose task has a record of its own: this one never
	// runs again.
	Handled bool `json:"handled,omitempty"`
	// Ledger is the runner's own record of what the task did outside.
	Ledger Value `json:"ledger,omitempty"`
	// Inner are the ledgers of tasks within a subgraph that remembers nothing, by Task.Key: it starts again from its input,
	// and what its tasks did outside must not be forgotten with the rest.
	Inner map[string]Value `json:"inner,omitempty"`
	// Claims are the thread-wide keys that the task wants to own whenever it runs.
	Claims []string `json:"claims,omitempty"`

	child *Record
}

// open returns the questions that wait for an answer.
func (t *TaskRecord) open() []Question {
	if t.Done || t.Handled {
		return nil
	}
	var out []Question
	for _, q := range t.Questions {
		if !answered(t.Answers, q.ID) {
			out = append(out, q)
		}
	}
	return out
}

func answered(answers []Answer, id string) bool {
	for _, a := range answers {
		if a.QuestionID == id {
			return true
		}
	}
	return false
}

// OpenQuestion is a question that waits for its answer, with the node that asked it and the superstep in which.
type OpenQuestion struct {
	Question
	Node string `json:"node"`
	Step int    `json:"step"`
}

// OpenQuestions returns the questions of the thread that wait for an answer, those of subgraphs included, in task order.
func (p *Program) OpenQuestions(t *Thread) []OpenQuestion {
	if t.Head == nil {
		return nil
	}
	return p.openQuestions(t, t.Head, nil)
}

func (p *Program) openQuestions(t *Thread, r *Record, nodes []string) []OpenQuestion {
	var out []OpenQuestion
	p.eachTask(t, r, nodes, func(step int, rec *TaskRecord) bool {
		for _, q := range rec.open() {
			out = append(out, OpenQuestion{Question: q, Node: rec.Node, Step: step})
		}
		return true
	})
	return out
}

// eachTask visits the unfinished leaf tasks of a record depth first, in path order, until visit returns false. A
// subgraph's task is its inner tasks: its own list of questions only repeats theirs.
func (p *Program) eachTask(t *Thread, r *Record, nodes []string, visit func(step int, rec *TaskRecord) bool) bool {
	for _, e := range r.tasks.sorted() {
		rec := e.rec
		if rec.Done || rec.Handled {
			continue
		}
		sub, child := p.childOf(t, rec, nodes)
		if sub == nil || child == nil {
			if !visit(r.Checkpoint.Step+1, rec) {
				return false
			}
			continue
		}
		if !sub.eachTask(t, child, append(nodes[:len(nodes):len(nodes)], rec.Node), visit) {
			return false
		}
	}
	return true
}

// childOf returns the program and the record of the subgraph that a task runs, nil for an ordinary task.
func (p *Program) childOf(t *Thread, rec *TaskRecord, nodes []string) (*Program, *Record) {
	at, ok := p.nodeAt[rec.Node]
	if !ok || p.nodes[at].sub == nil {
		return nil, nil
	}
	sub := p.nodes[at].sub
	if sub.Spec.Memory == MemoryThread {
		return sub, t.memory[memoryKey(nodes, rec.Node)]
	}
	return sub, rec.child
}

// memoryKey names a remembering subgraph: the nodes that lead to it, whatever the superstep.
func memoryKey(nodes []string, node string) string {
	return strings.Join(append(nodes[:len(nodes):len(nodes)], node), "|")
}

// byMemoryKey returns the subgraph that a memory key names.
func (p *Program) byMemoryKey(key string) (*Program, bool) {
	for _, name := range strings.Split(key, "|") {
		at, ok := p.nodeAt[name]
		if !ok || p.nodes[at].sub == nil {
			return nil, false
		}
		p = p.nodes[at].sub
	}
	return p, true
}
