package pregel

// showFinished shows the state with the finished siblings' writes, although no checkpoint holds them yet. Only the root
// does: a subgraph's interrupt is its parent's. Writes that conflict fail the run, as in LangGraph: to answer what is asked
// beside them would be in vain.
func (l *Loop) showFinished() {
	if l.root != l {
		return
	}
	preview, err := l.prog.apply(l.work, l.parts())
	switch {
	case err == nil:
		l.showValues(preview)
	case l.prog.Spec.Version > 1:
		l.fail(err)
	}
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

func (l *Loop) values(c *Checkpoint) {
	l.shown, l.output = c, nil
	if l.observe != nil {
		prog := l.prog
		l.emit(Event{Kind: EventValues, Values: func() map[string]Value { return prog.OutputOf(c) }})
	}
}

// taskEvent reports a task with its record's writes.
func (l *Loop) taskEvent(kind EventKind, tr *taskRun) {
	if l.observe == nil {
		return
	}
	e := Event{Kind: kind, Task: tr.task}
	if kind != EventTaskStart {
		e.Writes = tr.rec.Update
	}
	l.emit(e)
}

// tickEvent reports what is about to run.
func (l *Loop) tickEvent(planned []*Task) {
	if l.observe == nil {
		return
	}
	ahead := make([]Planned, len(planned))
	for i, t := range planned {
		ahead[i].Task = t
		if known, ok := l.rec.tasks.of(t.Path); ok {
			ahead[i].Known = *known
		}
	}
	l.emit(Event{Kind: EventTick, Checkpoint: l.rec, Work: l.work, Planned: ahead})
}

// emit tells the observer; the hidden entry is no news to anyone.
func (l *Loop) emit(e Event) {
	if l.observe == nil || e.Task != nil && e.Task.node == 0 {
		return
	}
	e.Namespace, e.Nodes, e.Step = l.namespace, l.nodes, l.step
	l.observe(e)
}
