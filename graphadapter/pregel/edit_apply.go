package pregel

// Apply makes the new checkpoint the thread's newest and returns its record; of a copy that is updated both, the copy
// first. routes are those that the branches of each of Tasks chose, in that order. On an error the thread is as it was.
func (e *Edit) Apply(routes [][]Target) ([]*Record, error) {
	if want := len(e.Tasks()); len(routes) != want {
		return nil, e.fail("the branches of %d updates chose routes, not of %d", len(routes), want)
	}
	var made []*Record
	var err error
	switch e.as {
	case End:
		made, err = e.one(SourceUpdate, e.step(), e.finished)
	case AsInput:
		made, err = e.one(SourceInput, e.from.Step+1, e.given)
	case AsCopy:
		made, err = e.copied(routes)
	default:
		made, err = e.one(SourceUpdate, e.step(), func() (*Checkpoint, error) { return e.updated(e.from, routes) })
	}
	if err != nil {
		return nil, err
	}
	e.keep(made[len(made)-1])
	e.thread.left = nil
	return made, nil
}

// one makes a single checkpoint.
func (e *Edit) one(source Source, step int, apply func() (*Checkpoint, error)) ([]*Record, error) {
	next, err := apply()
	if err != nil {
		return nil, err
	}
	return []*Record{e.record(next, e.parent(), e.branch(), source, step)}, nil
}

// copied makes a sibling of the edited checkpoint, and then the updates' checkpoint.
func (e *Edit) copied(routes [][]Target) ([]*Record, error) {
	var next *Checkpoint
	if len(e.edits) > 0 {
		var err error
		if next, err = e.updated(e.from, routes); err != nil {
			return nil, err
		}
	}
	branch := e.branch()
	sibling := e.record(e.from.next(), e.parent(), branch, SourceFork, e.from.Step+1)
	sibling.Checkpoint.Parent = e.base.Checkpoint.Parent
	if next == nil {
		return []*Record{sibling}, nil
	}
	return []*Record{sibling, e.record(next, sibling.Checkpoint, branch, SourceUpdate, e.step())}, nil
}

func (e *Edit) parent() *Checkpoint {
	if e.base == nil {
		return e.prog.emptyCheckpoint()
	}
	return e.base.Checkpoint
}

// branch names the branch of the checkpoints to be made: a new one when the thread has newer checkpoints than the edited one.
func (e *Edit) branch() string {
	if !e.thread.passed {
		return e.from.Branch
	}
	e.thread.passed = false
	return e.thread.newBranch()
}

// record seals a checkpoint that was made. The next run looks at the triggers of all nodes, not only at those written last.
func (e *Edit) record(c, parent *Checkpoint, branch string, source Source, step int) *Record {
	c.updated, c.hasUpdated, c.Branch = nil, false, branch
	e.thread.seq++
	e.prog.seal(c, parent, e.space, source, step, e.thread.seq)
	r := &Record{Checkpoint: c, dropped: e.prog.dropped(e.thread, e.base, e.nodes)}
	if e.base != nil {
		r.memory = e.base.memory
	}
	return r
}

// updated applies the nodes' updates, all in one superstep.
func (e *Edit) updated(c *Checkpoint, routes [][]Target) (*Checkpoint, error) {
	var writes []channelWrite
	for _, u := range e.edits {
		var chosen []Target
		if len(e.prog.nodes[u.node].branches) > 0 {
			chosen, routes = routes[0], routes[1:]
		}
		writes = e.prog.writes(writes, u.node, &Command{Update: u.values}, chosen)
	}
	return e.prog.applyAs(asEdit, c, []applied{{node: -1, writes: writes}})
}

// given puts new input into the input channel. Unlike a run's input it drops nothing of what was about to run (LangGraph).
func (e *Edit) given() (*Checkpoint, error) {
	return e.prog.apply(e.from, []applied{{node: -1, writes: []channelWrite{{e.prog.start, update{value: e.input}}}}})
}

// finished applies what is known of the pending tasks and drops the rest of them.
func (e *Edit) finished() (*Checkpoint, error) {
	if e.base == nil {
		return e.from, nil
	}
	l := &Loop{prog: e.prog, rec: e.base, work: e.from}
	planned := e.prog.plan(l.work, false)
	if err := l.applyControl(); err != nil {
		return nil, err
	}
	var parts []applied
	for _, tr := range e.prog.inOrder(e.prog.known(e.base, planned)) {
		part := applied{node: tr.task.node, sent: tr.task.IsSend()}
		if tr.rec.Done {
			rec := e.prog.tracked(tr.rec)
			part.writes = e.prog.writes(nil, tr.task.node, &rec.Command, rec.Routes)
		}
		parts = append(parts, part)
	}
	return e.prog.apply(l.work, parts)
}
