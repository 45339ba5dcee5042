package pregel

import "slices"

// taskRun is one task of the current superstep.
type taskRun struct {
	task      *Task
	rec       *TaskRecord
	child     *Loop
	attempts  int
	running   bool
	handedOut bool // Ready handed it out, and nobody has put it back
	ended     bool
	stopped   bool // its subgraph stopped at a breakpoint
	parked    bool // it waits for a thread-wide key; see the root's parked
	at        int  // its place among the superstep's tasks
	drained   bool // its subgraph stopped because the run is drained
	err       error
	of, by    *taskRun // the failed task that this one handles, and the other way round
	failure   error    // of the subgraph, while its node's retry policy is asked
	parent    *Command
}

// end counts a task as ended.
func (l *Loop) end(tr *taskRun) {
	if !tr.ended {
		tr.ended, tr.running, tr.handedOut = true, false, false
		l.open--
	}
}

// place completes a task with its loop, namespace, superstep and branch, which make its key.
func (l *Loop) place(t *Task) {
	t.loop, t.Namespace, t.Graph, t.Step, t.Asked, t.AskedIn = l, l.space(), l.graph, l.step, l.rec.asked, l.rec.askedIn
	t.Branch, t.Digest, t.StepsLeft, t.Limit = l.work.Branch, l.work.Digest, l.stop-l.step, l.opts.RecursionLimit
	t.Metered, t.Origin = l.thread.meter != nil, l.thread.origin
	t.key = "" // it may be placed again
	t.key = t.Key()
}

// space is the namespace of the superstep's tasks.
func (l *Loop) space() string {
	if l.rec.space != "" {
		return l.rec.space
	}
	return l.namespace
}

// enter makes a placed task one of this superstep, with what is known of it.
func (l *Loop) enter(tr *taskRun, t *Task, unknown *TaskRecord) {
	l.bind(tr, t, unknown)
	l.taskEvent(EventTaskStart, tr)
}

// bind gives a task its run and what is known of it.
func (l *Loop) bind(tr *taskRun, t *Task, unknown *TaskRecord) {
	tr.task, tr.rec, t.run = t, l.record(t, unknown), tr
	if tr.rec == unknown && l.forgetful != nil && len(l.forgetful.rec.Inner) > 0 {
		tr.rec.Ledger = l.forgetful.rec.Inner[t.Key()]
	}
	if tr.rec == unknown && tr.rec.Ledger == nil && len(l.thread.left) > 0 {
		tr.rec.Ledger = l.thread.left[t.Place()]
	}
	l.takeEarly(tr)
	t.Answers, t.Ledger = l.answers(tr.rec), tr.rec.Ledger
}

// unknown returns a record for each task, and room for all of them.
func (l *Loop) unknown(planned []*Task) []TaskRecord {
	l.rec.tasks.grow(len(planned))
	return make([]TaskRecord, len(planned))
}

// record returns what is known of a task of the current checkpoint, and begins to know it.
func (l *Loop) record(t *Task, unknown *TaskRecord) *TaskRecord {
	if rec, ok := l.rec.tasks.of(t.Path); ok {
		return rec
	}
	unknown.Node = t.Node
	l.rec.tasks.put(t.Path, unknown)
	return unknown
}

// start runs a task: not at all when it is already finished or still waits for its answer, in place when it has no
// function to call, as a nested loop when it is a subgraph, else by handing it out.
func (l *Loop) start(tr *taskRun) {
	n := &l.prog.nodes[tr.task.node]
	switch {
	case tr.rec.Done:
		l.end(tr)
		l.keptUpdate(tr)
	case tr.rec.Handled: // its handler is a task of its own
		l.end(tr)
	case n.sub != nil && !l.askAgain && l.childWaits(tr):
		l.end(tr)
		tr.asks(l, l.prog.openWithin(l.thread, tr.rec, l.nodes))
	case n.sub != nil:
		l.startChild(tr)
	case !l.askAgain && len(tr.rec.open()) > 0:
		l.end(tr)
		tr.asks(l, tr.rec.open())
	case tr.task.node == 0:
		l.startEntry(tr)
	default:
		l.handOut(tr)
	}
}

// handOut queues a task, once it owns the keys that it claims.
func (l *Loop) handOut(tr *taskRun) {
	if len(tr.rec.Claims) > 0 && !l.root.own(tr) {
		l.root.park(tr)
		return
	}
	tr.running, tr.handedOut = true, false
	l.root.queue = append(l.root.queue, tr.task)
}

// startEntry copies the input into the state. It is a task of its own (LangGraph's hidden __start__), handed out only
// when the entry has branches.
func (l *Loop) startEntry(tr *taskRun) {
	command, err := l.prog.entryCommand(l.work.cells[l.prog.start].value.Value())
	if err != nil {
		tr.err = err
		l.end(tr)
		return
	}
	if len(tr.task.Branches) > 0 {
		command.Update = tr.task.names().complete(l.prog, command.Update)
		tr.task.RouteOnly, tr.task.Done = true, command
		l.handOut(tr)
		return
	}
	l.finish(tr, Outcome{Command: command})
}

// finish takes in a task's outcome.
func (l *Loop) finish(tr *taskRun, o Outcome) {
	if tr.task.Retry != nil && !o.Yielded {
		l.retried(tr, o)
		return
	}
	if o.Ledger != nil {
		l.keepLedger(tr, o.Ledger)
	}
	l.thread.meter.count(o.Spent)
	if o.Drain != "" {
		l.Drain(o.Drain)
	}
	err := l.keepAll(tr, o.Kept)
	if o.Yielded && err == nil {
		if err = l.yielded(tr, o.Claim); err == nil {
			return
		}
	}
	if err != nil && o.Error == nil {
		o = Outcome{Emitted: o.Emitted, Error: &NodeError{Type: KeyLimitType, Message: err.Error(), Graph: l.prog.Spec.Name,
			Node: tr.task.Node, Final: true}}
	}
	l.root.disown(tr)
	l.ended(tr, o)
	if tr.rec.over() {
		tr.rec.Claims, tr.rec.Inner = nil, nil // it never runs again
	}
	if o.Error == nil && tr.missed(o.Questions) {
		tr.ended = false
		l.open++
		l.handAgain(tr)
	}
}

// missed reports whether one of these questions was answered while the task ran, which it could not see: it had been
// asked when the task ran before.
func (tr *taskRun) missed(questions []Question) bool {
	return slices.ContainsFunc(questions, func(q Question) bool {
		return answered(tr.rec.Answers, q.ID) && !answered(tr.task.Answers, q.ID)
	})
}

// keepLedger keeps a task's ledger where the task finds it when it runs again.
func (l *Loop) keepLedger(tr *taskRun, ledger Value) {
	tr.rec.Ledger = ledger
	if l.forgetful != nil {
		outer := l.forgetful.rec
		if outer.Inner == nil {
			outer.Inner = map[string]Value{}
		}
		outer.Inner[tr.task.Key()] = ledger
	}
	l.emit(Event{Kind: EventLedger, Task: tr.task, Value: ledger})
}

// ended takes in how a task ended.
func (l *Loop) ended(tr *taskRun, o Outcome) {
	l.end(tr)
	for _, e := range o.Emitted {
		l.emission(tr, e)
	}
	switch {
	case o.Error != nil:
		if len(tr.rec.Answers) > 0 { // LangGraph takes the answer's record for a write: it shows an update of nothing
			l.emit(Event{Kind: EventUpdate, Task: tr.task, Error: o.Error})
		}
		l.failed(tr, o.Error)
	case len(o.Questions) > 0:
		l.ask(tr, o.Questions)
	case o.Parent != nil:
		tr.parent = o.Parent
	default:
		o.Update = tr.task.names().complete(l.prog, o.Update)
		tr.rec.Done, tr.rec.Command, tr.rec.Routes = true, o.Command, o.Routes
		if o.Cached { // it did not run: it has an update and no end
			l.keptUpdate(tr)
			return
		}
		l.taskEvent(EventUpdate, tr)
		l.taskEvent(EventTaskEnd, tr)
	}
}

// keptUpdate reports what a task wrote without running now.
func (l *Loop) keptUpdate(tr *taskRun) {
	l.emit(Event{Kind: EventUpdate, Task: tr.task, Writes: tr.rec.Update, Cached: true})
}

// emission reports what a task streamed.
func (l *Loop) emission(tr *taskRun, e Emission) {
	event := Event{Kind: EventCustom, Task: tr.task, Value: e.Value}
	switch e.Kind {
	case EmissionMessage:
		event.Kind = EventMessage
	case EmissionReset:
		event.Kind, event.Attempt = EventReset, e.Attempt
	}
	l.emit(event)
}

// ask notes a task's questions.
func (l *Loop) ask(tr *taskRun, questions []Question) {
	tr.rec.Questions = questions
	tr.asks(l, questions)
}

// asks reports what a task asks: one whose questions are still open does not run, and asks them as if it had.
func (tr *taskRun) asks(l *Loop, questions []Question) {
	l.emit(Event{Kind: EventInterrupt, Task: tr.task, Questions: questions, Work: l.work})
	l.emit(Event{Kind: EventTaskEnd, Task: tr.task, Questions: questions})
}

// answers are those of a task's own record, and those kept for a subgraph that remembers nothing.
func (l *Loop) answers(rec *TaskRecord) []Answer {
	if len(l.pool) == 0 {
		return rec.Answers
	}
	return append(slices.Clip(rec.Answers), l.pool...)
}

// takeEarly gives a task the answers that were given before it asks. What it asks from now on is asked, not dropped.
func (l *Loop) takeEarly(tr *taskRun) {
	path := []string{tr.task.Path}
	for at := l; at != nil; at = at.outer {
		if len(at.rec.dropped) > 0 {
			at.rec.dropped = slices.DeleteFunc(slices.Clone(at.rec.dropped), func(d droppedQuestion) bool { return slices.Equal(d.Path, path) })
		}
		for i := 0; i < len(at.rec.early); {
			e := at.rec.early[i]
			if !slices.Equal(e.Path, path) {
				i++
				continue
			}
			tr.rec.Answers = append(slices.Clip(tr.rec.Answers), e.Answer)
			at.rec.early = slices.Delete(slices.Clone(at.rec.early), i, i+1)
		}
		if at.within != nil {
			path = slices.Concat([]string{at.within.task.Path}, path)
		}
	}
}

// inOrder returns a superstep's tasks sorted for applying. A handler takes the place of the task that failed.
func (p *Program) inOrder(tasks []*taskRun) []*taskRun {
	byOrder := func(a, b *taskRun) int { return p.less(a.place(), b.place()) }
	if slices.IsSortedFunc(tasks, byOrder) {
		return tasks
	}
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, byOrder)
	return sorted
}

func (tr *taskRun) place() *Task {
	if tr.of != nil {
		return tr.of.task
	}
	return tr.task
}
