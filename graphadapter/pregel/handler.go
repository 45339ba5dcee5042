package pregel

import "slices"

// failed ends a task that has failed for good. When its node has an error handler, the failure goes on record and the
// handler takes over in the same superstep; the node does not run again. What was stopped from outside did not fail.
// (Section 7.4 of the semantics.)
func (l *Loop) failed(tr *taskRun, err error) {
	tr.rec.Error = AsNodeError(l.prog.Spec.Name, tr.task.Node, err)
	tr.rec.Handled = l.prog.nodes[tr.task.node].handler > 0 && !cancelled(err)
	if !tr.rec.Handled {
		tr.err = err
	}
	l.end(tr)
	l.emit(Event{Kind: EventTaskEnd, Task: tr.task, Error: tr.rec.Error})
	if tr.rec.Handled {
		h := l.addHandler(tr)
		l.open++
		l.start(h)
	}
}

// addHandler adds the task that handles a failed one: with the failed task's input, and a record of its own.
func (l *Loop) addHandler(tr *taskRun) *taskRun {
	h, t := l.handling(tr)
	l.enter(h, t, &TaskRecord{})
	l.tasks = append(l.tasks, h)
	return h
}

// handling makes that task, in its place.
func (l *Loop) handling(tr *taskRun) (*taskRun, *Task) {
	t := l.prog.handlerTask(tr.task)
	t.State, t.Failure = l.prog.inputOf(tr.task), tr.rec.Error
	h := &taskRun{of: tr, at: len(l.tasks)}
	tr.by = h
	l.place(t)
	return h, t
}

// sortHandlers puts each handler after the task that failed, so that the order in which tasks failed decides nothing.
func (l *Loop) sortHandlers() {
	planned := slices.IndexFunc(l.tasks, func(tr *taskRun) bool { return tr.of != nil })
	if planned < 0 {
		return
	}
	sorted := make([]*taskRun, 0, len(l.tasks))
	for _, tr := range l.tasks[:planned] {
		sorted = append(sorted, tr)
		if tr.by != nil {
			sorted = append(sorted, tr.by)
		}
	}
	l.tasks = sorted
}

// handlerTask is the task that handles a failed one, without its input.
func (p *Program) handlerTask(failed *Task) *Task {
	at := p.nodes[failed.node].handler
	return &Task{Path: failed.Path + handlerMark, Node: p.nodes[at].name, Arg: failed.Arg, node: at, send: failed.send}
}

// inputOf is the state that a task's node reads. Its State holds more when the node has branches, which read everything.
func (p *Program) inputOf(t *Task) map[string]Held {
	n := &p.nodes[t.node]
	if n.reads == nil || len(n.branches) == 0 {
		return t.State
	}
	read := make(map[string]Held, len(n.reads))
	for _, ch := range n.reads {
		if v, ok := t.State[p.channels[ch].name]; ok {
			read[p.channels[ch].name] = v
		}
	}
	return read
}

// known is what a record has of the planned tasks of its checkpoint, each failed task followed by its handler. Nothing of
// the record may be changed through it.
func (p *Program) known(r *Record, planned []*Task) []*taskRun {
	of := func(t *Task) *TaskRecord {
		if rec, ok := r.tasks.of(t.Path); ok {
			return rec
		}
		return &TaskRecord{Node: t.Node}
	}
	var out []*taskRun
	for _, t := range planned {
		tr := &taskRun{task: t, rec: of(t)}
		out = append(out, tr)
		if tr.rec.Handled {
			h := p.handlerTask(t)
			out = append(out, &taskRun{task: h, rec: of(h), of: tr})
		}
	}
	return out
}

// mendHandled makes records that were stored agree with the program: a failure that the program has no handler for is one
// of a task that runs again.
func (p *Program) mendHandled(tasks *taskRecords) {
	for _, e := range tasks.sorted() {
		path, rec := e.path, e.rec
		if !rec.Handled {
			continue
		}
		at, known := p.nodeAt[rec.Node]
		rec.Handled = known && p.nodes[at].handler > 0 && rec.Error != nil && !rec.Done
		h, began := tasks.of(path + handlerMark)
		if began && (!rec.Handled || h.Node != p.nodes[p.nodes[at].handler].name) {
			tasks.remove(path + handlerMark)
		}
	}
}
