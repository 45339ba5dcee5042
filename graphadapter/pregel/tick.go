package pregel

import "slices"

// tick plans the next superstep and starts its tasks.
func (l *Loop) tick() {
	if l.step > l.stop {
		l.look()
		l.fail(&RecursionError{Graph: l.prog.Spec.Name, Limit: l.opts.RecursionLimit})
		return
	}
	planned := l.look()
	if len(planned) == 0 {
		if l.status = StatusDone; l.root == l {
			l.thread.left = nil
		}
		return
	}
	if l.root.drain != "" {
		l.stopDrained()
		return
	}
	if l.before.some && l.news(l.work) && l.before.hit(planned) {
		l.stopAtBreakpoint()
		return
	}
	if len(l.thread.meter.reached()) > 0 {
		l.thread.meter.stop(l)
		return
	}
	l.tasks = slices.Grow(l.tasks[:0], len(planned))[:len(planned)]
	runs := make([]taskRun, len(planned))
	unknown := l.unknown(planned)
	for i, t := range planned {
		l.tasks[i] = &runs[i]
		runs[i].at = i
		l.enter(l.tasks[i], t, &unknown[i])
	}
	for _, tr := range l.tasks {
		if tr.rec.Handled {
			l.addHandler(tr)
		}
	}
	l.open, l.starting = len(l.tasks), true
	for _, tr := range l.tasks {
		l.start(tr)
	}
	l.starting = false
}

// look plans the next superstep, and reports it. Where nothing runs any more that is for observers alone: they know each checkpoint with
// what it leads to.
func (l *Loop) look() []*Task {
	planned := l.prog.plan(l.work, true)
	for _, t := range planned {
		l.place(t) // before the event: observers keep the tasks that they get
	}
	if l.observe == nil {
		return planned
	}
	ahead := make([]Planned, len(planned))
	for i, t := range planned {
		ahead[i].Task = t
		if known, ok := l.rec.tasks.of(t.Path); ok {
			ahead[i].Known = *known
		}
	}
	l.emit(Event{Kind: EventTick, Checkpoint: l.rec, Work: l.work, Planned: ahead})
	return planned
}

// afterTick ends a superstep whose tasks have all ended: it is applied whole, or not at all.
func (l *Loop) afterTick() {
	l.sortHandlers()
	if err := l.failure(); err != nil {
		l.fail(err)
		return
	}
	for _, tr := range l.tasks {
		if tr.parent != nil {
			l.endWithParent(tr)
			return
		}
	}
	if l.waits() {
		return
	}
	next, err := l.prog.apply(l.work, l.parts())
	if err != nil {
		l.fail(err)
		return
	}
	l.showValues(next)
	l.work, l.replaying = next, false
	l.save(SourceLoop)
	l.thread.meter.superstep(l.tasks)
	l.resuming, l.askAgain = nil, true
	if l.after.some && l.news(next) && l.after.hit(taskList(l.tasks)) {
		l.look()
		l.stopAtBreakpoint()
	}
}

// waits stops the run when a subgraph was drained, or found the budget spent, when tasks wait for answers, or when a subgraph is at a breakpoint.
func (l *Loop) waits() bool {
	stopped, asked, drained := false, false, false
	for _, tr := range l.tasks {
		stopped, drained = stopped || tr.stopped, drained || tr.drained
		asked = asked || !tr.rec.over() && len(tr.rec.Questions) > 0 && !tr.stopped
	}
	switch {
	case drained && l.root.drain == "":
		l.thread.meter.stop(l)
	case drained: // it was asked for; the questions stay open
		l.stopDrained()
	case asked:
		l.status = StatusWaiting
		l.showFinished()
	case stopped:
		if l.showFinished(); l.status == StatusRunning {
			l.stopAtBreakpoint()
		}
	}
	return asked || stopped || drained
}

// stopDrained stops the run between two supersteps.
func (l *Loop) stopDrained() {
	l.status, l.err = StatusDrained, &DrainedError{Graph: l.prog.Spec.Name, Reason: l.root.drain}
}

// parts are the finished tasks' writes in apply order. A failure that is handled belongs to its handler's part: the
// failed node has run, and wrote nothing.
func (l *Loop) parts() []applied {
	size := 0
	for _, tr := range l.tasks {
		size += len(tr.rec.Update) + len(tr.rec.Goto) + len(tr.rec.Routes) + len(l.prog.nodes[tr.task.node].static)
	}
	parts, all := slices.Grow(l.applies[:0], len(l.tasks)), slices.Grow(l.writes[:0], size)
	defer func() { l.applies, l.writes = parts[:0], all[:0] }() // they count until the next call
	for _, tr := range l.prog.inOrder(l.tasks) {
		if tr.rec.Done {
			if tr.of != nil {
				parts = append(parts, applied{node: tr.of.task.node, sent: tr.of.task.IsSend()})
			}
			from := len(all)
			all = l.prog.writes(all, tr.task.node, &tr.rec.Command, tr.rec.Routes)
			tr.task.remind(all[from:])
			parts = append(parts, applied{node: tr.task.node, sent: tr.task.IsSend(), writes: all[from:len(all):len(all)]})
		}
	}
	return parts
}

// news reports whether any channel changed since the last resume: only then does a breakpoint fire.
func (l *Loop) news(c *Checkpoint) bool {
	for ch, v := range c.versions {
		if c.interruptSeen == nil && v > 0 || c.interruptSeen != nil && v > c.interruptSeen[ch] {
			return true
		}
	}
	return false
}

// stopAtBreakpoint stops the run at a breakpoint. Only the root loop reports the stop.
func (l *Loop) stopAtBreakpoint() {
	l.status = StatusBreakpoint
	if l.root == l {
		l.emit(Event{Kind: EventInterrupt})
	}
}

// failure is why the superstep failed: the first error in task order. A subgraph of which a task was stopped from outside
// was stopped, whatever else failed in it: its node has not failed for good.
func (l *Loop) failure() (err error) {
	for _, tr := range l.tasks {
		if tr.err != nil && (err == nil || l.within != nil && cancelled(tr.err) && !cancelled(err)) {
			err = tr.err
		}
	}
	return err
}

func (l *Loop) fail(err error) { l.status, l.err = StatusFailed, err }

// endWithParent ends a subgraph's run with a command to its parent; a root has none.
func (l *Loop) endWithParent(tr *taskRun) {
	if l.root == l {
		l.fail(&ParentCommandError{Graph: l.prog.Spec.Name, Node: tr.task.Node, Command: tr.parent})
		return
	}
	l.status, l.parent = statusParent, tr.parent
}

// save makes the working checkpoint the thread's newest.
func (l *Loop) save(source Source) {
	parent := l.rec.Checkpoint
	l.thread.seq++
	l.prog.seal(l.work, parent, l.namespace, source, l.step, l.thread.seq)
	l.rec = &Record{Checkpoint: l.work}
	switch {
	case l.root == l:
		l.thread.passed = false
		l.rec.memory = l.thread.remembered()
	case l.prog.Spec.Memory == MemoryThread:
		l.rec.space = l.namespace
	}
	l.keep(l.rec)
	l.emit(Event{Kind: EventCheckpoint, Checkpoint: l.rec})
	l.step++
}

func taskList(runs []*taskRun) []*Task {
	tasks := make([]*Task, len(runs))
	for i, tr := range runs {
		tasks[i] = tr.task
	}
	return tasks
}

// showFinished shows the state with the finished siblings' writes, although no checkpoint holds them yet. Only the root
// does: a subgraph's interrupt is its parent's. Writes that conflict fail the run, as in LangGraph: to answer what is asked
// beside them would be in vain.
func (l *Loop) showFinished() {
	if l.root != l {
		return
	}
	preview, err := l.prog.apply(l.work, l.parts())
	if err != nil {
		l.fail(err)
		return
	}
	l.showValues(preview)
}

// showValues shows the output channels if this superstep's tasks wrote one.
func (l *Loop) showValues(c *Checkpoint) {
	for _, tr := range l.tasks {
		if !tr.rec.Done {
			continue
		}
		for _, w := range tr.rec.Update {
			if at, ok := l.prog.index[w.Channel]; ok && at < l.prog.state && l.prog.outputs[at] && c.versions[at] > l.work.versions[at] &&
				l.prog.channels[at].available(&c.cells[at]) {
				l.values(c)
				return
			}
		}
	}
}
