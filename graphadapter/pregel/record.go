package pregel

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Record is a checkpoint and what has happened since: control writes from outside, and the tasks that it led to.
type Record struct {
	Checkpoint *Checkpoint
	control    []Command
	tasks      taskRecords
	memory     map[string]*Record // the root's: what its subgraphs remembered when this was made
	// line is the branch that its tasks have in their keys, when not the checkpoint's; asked the one in the ids of their
	// questions, when not that: an answer finds its question by the id under which it was asked.
	line, asked *string
	// askedIn is the thread that the ids of its tasks' questions have, of a thread that was copied from that one; "" for its own.
	askedIn string
	// space is the namespace that its tasks have, of a subgraph that remembers: it may go on in another superstep of the
	// graph around it, where its tasks are the same as before.
	space string
	// anew is of a subgraph that remembers, when what it was doing was taken back: it begins with its input again, also where the run
	// around it goes on.
	anew bool
	// dropped are the questions that the update dropped which made this record, early the answers to them.
	dropped []droppedQuestion
	early   []earlyAnswer
}

func (r *Record) clone() *Record {
	c := r.WithoutTasks()
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

// WithoutTasks is the record without its tasks.
func (r *Record) WithoutTasks() *Record {
	return &Record{Checkpoint: r.Checkpoint, control: r.control, memory: r.memory, line: r.line, asked: r.asked, askedIn: r.askedIn, space: r.space,
		anew: r.anew, dropped: r.dropped, early: r.early}
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

// askedBranch is the one that the ids of its tasks' questions have.
func (r *Record) askedBranch() string {
	if r.asked != nil {
		return *r.asked
	}
	return r.branch()
}

// Join returns a record that knows what r knew when it was made and what a later record of the same checkpoint, read
// back from storage, has found out since about the tasks that the checkpoint led to.
func (r *Record) Join(later *Record) *Record {
	joined := later.WithoutTasks()
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

// over reports whether the task never runs again.
func (t *TaskRecord) over() bool { return t.Done || t.Handled }

// open returns the questions that wait for an answer.
func (t *TaskRecord) open() []Question {
	if t.over() {
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
	return slices.ContainsFunc(answers, func(a Answer) bool { return a.QuestionID == id })
}

func (t *TaskRecord) answeredOne() bool {
	return slices.ContainsFunc(t.Questions, func(q Question) bool { return answered(t.Answers, q.ID) })
}

// again is the record on another branch: every task runs again, with its questions and answers.
func (r *Record) again(branch string) *Record {
	c := r.WithoutTasks()
	c.line, c.asked = &branch, new(r.askedBranch())
	for _, e := range r.tasks.sorted() {
		if !strings.HasSuffix(e.path, handlerMark) {
			c.tasks.put(e.path, &TaskRecord{Node: e.rec.Node, Questions: e.rec.Questions, Answers: e.rec.Answers, child: e.rec.child})
		}
	}
	return c
}

// copied makes the record one of a copy of a thread: questions keep their ids, and nothing that its tasks did outside is the copy's. An
// approval that was asked for is asked for anew: what it was about is in what is left behind.
func (r *Record) copied(from string) {
	r.askedIn = cmp.Or(r.askedIn, from)
	for _, e := range r.tasks.sorted() {
		t := e.rec
		t.Ledger, t.Inner, t.Claims = nil, nil, nil
		if !t.over() && slices.ContainsFunc(t.Questions, func(q Question) bool { return q.Approval != nil }) {
			t.Questions, t.Answers = nil, nil
		}
		if t.child != nil {
			t.child.copied(from)
		}
	}
}

// droppedQuestion is a question that an update dropped.
type droppedQuestion struct {
	// Path are the paths of the tasks that led to it, from the graph that was updated; the last is the one that asked.
	Path     []string `json:"path"`
	Question Question `json:"question"`
}

// earlyAnswer answers a question that is to be asked again, in the superstep after its record.
type earlyAnswer struct {
	Path   []string `json:"path"`
	Answer Answer   `json:"answer"`
}

// tracked is a finished task's record without writes to untracked channels: those are in no checkpoint.
func (p *Program) tracked(rec *TaskRecord) *TaskRecord {
	kept := *rec
	kept.Update = trackedWrites(p, rec.Update)
	return &kept
}

// trackedCommands are commands without writes to untracked channels.
func trackedCommands(p *Program, commands []Command) []Command {
	kept := slices.Clone(commands)
	for i := range kept {
		kept[i].Update = trackedWrites(p, kept[i].Update)
	}
	return kept
}

func trackedWrites(p *Program, writes []Write) (kept []Write) {
	for _, w := range writes {
		if at, ok := p.index[w.Channel]; ok && (at >= p.state || p.channels[at].rule != ruleUntracked) {
			kept = append(kept, w)
		}
	}
	return kept
}

// handlerMark follows the failed task's path in the path of its error handler's task. No node's name and no Send's
// place in its path has it.
const handlerMark = ":handler"

// taskRecords are what is known of the tasks of a checkpoint, by their paths. Nearly every checkpoint leads to a few tasks,
// for which a list costs least.
type taskRecords struct {
	list []pathRecord
	at   map[string]int // in the list; nil for few
}

type pathRecord struct {
	path string
	rec  *TaskRecord
}

// fewRecords is how many are found without a map.
const fewRecords = 8

func (r *taskRecords) len() int { return len(r.list) }

// grow makes room for n more.
func (r *taskRecords) grow(n int) { r.list = slices.Grow(r.list, n) }

// find returns a record's place in the list, -1 for none.
func (r *taskRecords) find(path string) int {
	if r.at == nil {
		return slices.IndexFunc(r.list, func(known pathRecord) bool { return known.path == path })
	}
	if at, ok := r.at[path]; ok {
		return at
	}
	return -1
}

// of returns the record of a path.
func (r *taskRecords) of(path string) (*TaskRecord, bool) {
	if at := r.find(path); at >= 0 {
		return r.list[at].rec, true
	}
	return nil, false
}

// put adds a record, of a path that has none.
func (r *taskRecords) put(path string, rec *TaskRecord) {
	r.list = append(r.list, pathRecord{path, rec})
	switch n := len(r.list); {
	case r.at != nil:
		r.at[path] = n - 1
	case n > fewRecords:
		r.index()
	}
}

func (r *taskRecords) index() {
	r.at = make(map[string]int, cap(r.list))
	for i := range r.list {
		r.at[r.list[i].path] = i
	}
}

func (r *taskRecords) remove(path string) {
	at := r.find(path)
	if at < 0 {
		return
	}
	r.list = slices.Delete(slices.Clone(r.list), at, at+1) // it may be ranged over
	if r.at != nil {
		r.index()
	}
}

// sorted are the records as they are now, in order of their paths. It is not to be changed.
func (r *taskRecords) sorted() []pathRecord {
	byPath := func(a, b pathRecord) int { return strings.Compare(a.path, b.path) }
	if slices.IsSortedFunc(r.list, byPath) {
		return r.list
	}
	sorted := slices.Clone(r.list)
	slices.SortFunc(sorted, byPath)
	return sorted
}

// size is how many bytes the task has come to: what it wrote, sent, asked, was answered, and did outside.
func (t *TaskRecord) size() int {
	size := len(t.Ledger) + ResultBytes(&t.Command, t.Routes)
	for i := range t.Questions {
		size += len(t.Questions[i].Value) + len(t.Questions[i].Schema) + len(t.Questions[i].Approval)
	}
	for i := range t.Answers {
		size += len(t.Answers[i].Value)
	}
	//workflowcheck:ignore A sum has no order.
	for _, ledger := range t.Inner {
		size += len(ledger)
	}
	return size
}
