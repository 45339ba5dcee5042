package pregel

import "slices"

// visit is what walk hands out: a task of a thread, and how it was reached.
type visit struct {
	in    *Record // that knows the task
	path  string
	rec   *TaskRecord
	inner *Record // of the subgraph that the task runs; nil when it runs none, or has not begun to
	// What leads to the task's graph from where the walk began.
	nodes     []string // the names of nodes
	tasks     []string // the paths of their tasks
	namespace string
}

// walk visits the tasks of a record and of the subgraphs under way within them, depth first in path order: a subgraph's task
// comes before those within it. It stops when each returns false, and returns false then. Nothing is in a nil record.
func (p *Program) walk(t *Thread, from visit, each func(visit) bool) bool {
	if from.in == nil {
		return true
	}
	for _, e := range from.in.tasks.sorted() {
		at := from
		at.path, at.rec = e.path, e.rec
		sub, inner := p.childOf(t, e.rec, from.nodes)
		at.inner = inner
		if !each(at) {
			return false
		}
		if inner != nil && !e.rec.over() && !sub.walk(t, at.inside(), each) {
			return false
		}
	}
	return true
}

// inside is where a walk goes on within a subgraph's task.
func (at visit) inside() visit {
	return visit{in: at.inner, nodes: slices.Concat(at.nodes, []string{at.rec.Node}), tasks: at.taskPath(), namespace: childNamespace(at.task())}
}

// taskPath are the paths of the tasks that lead to the task, its own last.
func (at visit) taskPath() []string { return slices.Concat(at.tasks, []string{at.path}) }

// task is the task with what its key is made of.
func (at visit) task() *Task {
	return &Task{Namespace: at.namespace, Step: at.in.Checkpoint.Step + 1, Path: at.path, Branch: at.in.Checkpoint.Branch}
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

// eachTask visits the unfinished leaf tasks of a record depth first, in path order, until each returns false. A
// subgraph's task is its inner tasks: its own list of questions only repeats theirs.
func (p *Program) eachTask(t *Thread, r *Record, nodes []string, each func(step int, rec *TaskRecord) bool) {
	p.walk(t, visit{in: r, nodes: nodes}, func(at visit) bool {
		return at.rec.over() || at.inner != nil || each(at.in.Checkpoint.Step+1, at.rec)
	})
}

// eachWithin is eachTask of the subgraph that a task runs. It reports false when there is none under way.
func (p *Program) eachWithin(t *Thread, rec *TaskRecord, nodes []string, each func(rec *TaskRecord) bool) bool {
	sub, child := p.childOf(t, rec, nodes)
	if child != nil {
		sub.eachTask(t, child, slices.Concat(nodes, []string{rec.Node}), func(_ int, inner *TaskRecord) bool { return each(inner) })
	}
	return child != nil
}

// OpenQuestion is a question that waits for its answer, with the node that asked it and the superstep in which.
type OpenQuestion struct {
	Question
	Node string `json:"node"`
	Step int    `json:"step"`
}

// OpenQuestions returns the questions of the thread that wait for an answer, those of subgraphs included, in task order. The
// one for more of a budget that is spent comes last.
func (p *Program) OpenQuestions(t *Thread) []OpenQuestion {
	var out []OpenQuestion
	p.eachTask(t, t.Head, nil, func(step int, rec *TaskRecord) bool {
		for _, q := range rec.open() {
			out = append(out, OpenQuestion{Question: q, Node: rec.Node, Step: step})
		}
		return true
	})
	if q, open := t.openBudget(); open {
		out = append(out, q)
	}
	return out
}

// openWithin are the open questions of a subgraph's task.
func (p *Program) openWithin(t *Thread, rec *TaskRecord, nodes []string) []Question {
	var out []Question
	p.eachWithin(t, rec, nodes, func(inner *TaskRecord) bool {
		out = append(out, inner.open()...)
		return true
	})
	return out
}

// gathered are a task's answers and those of the tasks within it.
func (p *Program) gathered(t *Thread, rec *TaskRecord, nodes []string) []Answer {
	answers := slices.Clip(rec.Answers)
	p.eachWithin(t, rec, nodes, func(inner *TaskRecord) bool {
		for _, a := range inner.Answers {
			if !answered(answers, a.QuestionID) {
				answers = append(answers, a)
			}
		}
		return true
	})
	return answers
}

// hasNews reports whether a task that waits has an answer that it has not seen: an answered question among those that
// it asked when it last ran.
func (p *Program) hasNews(t *Thread, rec *TaskRecord, nodes []string) bool {
	if rec.over() {
		return false
	}
	news := false
	if p.eachWithin(t, rec, nodes, func(inner *TaskRecord) bool {
		news = inner.answeredOne()
		return !news
	}) {
		return news
	}
	return rec.answeredOne()
}

// TaskLedger is what one task of the newest superstep did outside, as its runner recorded it.
type TaskLedger struct {
	Node   string `json:"node"`
	Step   int    `json:"step"`
	Ledger Value  `json:"ledger"`
	// Place is the task's [Task.Place].
	Place string `json:"place,omitempty"`
}

// Ledgers returns the ledgers of the tasks that the newest checkpoint led to, finished ones included, each followed by
// those of the tasks under way within it.
func (p *Program) Ledgers(t *Thread) []TaskLedger {
	var out []TaskLedger
	p.walk(t, visit{in: t.Head}, func(at visit) bool {
		if at.rec.Ledger != nil {
			task := at.task()
			out = append(out, TaskLedger{Node: at.rec.Node, Step: task.Step, Ledger: at.rec.Ledger, Place: task.Place()})
		}
		return true
	})
	return out
}

// ShortenLedgers replaces the ledgers of the tasks that the newest checkpoint led to, and of those within them, by what
// short makes of them: the thread is to be stored, and is too large.
func (p *Program) ShortenLedgers(t *Thread, short func(Value) Value) {
	p.walk(t, visit{in: t.Head}, func(at visit) bool {
		if at.rec.Ledger != nil {
			at.rec.Ledger = short(at.rec.Ledger)
		}
		for _, key := range sortedKeys(at.rec.Inner) {
			at.rec.Inner[key] = short(at.rec.Inner[key])
		}
		return true
	})
}
