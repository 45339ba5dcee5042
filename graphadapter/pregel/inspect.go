package pregel

import "slices"

// Snapshot is a thread's state at one checkpoint, as people and programs see it.
type Snapshot struct {
	// Checkpoint is the checkpoint's id, "" for a thread without one; Parent is the one it came from.
	Checkpoint string `json:"checkpoint,omitempty"`
	Parent     string `json:"parent,omitempty"`
	Source     Source `json:"source,omitempty"`
	Step       int    `json:"step"`
	// Values are the channels that have a value; of the newest checkpoint with the finished tasks' writes applied.
	Values map[string]Value `json:"values"`
	// Next are the nodes still to run: those that have not begun, wait for an answer, or failed.
	Next  []string       `json:"next"`
	Tasks []TaskSnapshot `json:"tasks"`
}

// TaskSnapshot is one task that a checkpoint leads to.
type TaskSnapshot struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Done bool   `json:"done,omitempty"`
	// Questions are what it asked when it last ran: none of a finished task in the newest state.
	Questions []Question `json:"questions,omitempty"`
	Error     *NodeError `json:"error,omitempty"`
	// Wrote is what it wrote, once it is done; nil for the newest state.
	Wrote []Write `json:"wrote,omitempty"`
	// State is the subgraph's own state, while the task has one.
	State *Snapshot `json:"state,omitempty"`
}

// Snapshot shows a record. newest says that it is the thread's newest and was not asked for by its id: then the
// finished tasks' writes are shown too, and finished tasks are neither in Next nor list what they once asked. Otherwise
// it tells of the superstep: all its tasks, with all that they asked. (Section 10.1 of the semantics.) A subgraph's state
// is the newest of that subgraph's run in either case. It fails with *InvalidUpdateError when those writes conflict.
func (p *Program) Snapshot(t *Thread, r *Record, newest bool) (*Snapshot, error) {
	return snapshot(p, t, r, newest, nil)
}

// Now shows the newest record. Finished tasks' writes that conflict cannot be shown: then it is the record as it was before
// them, with all of its tasks, which are still to do.
func (p *Program) Now(t *Thread) (*Snapshot, error) {
	s, shown, err := now(p, t)
	return withValues(p, s, shown, err)
}

// NowHeld is Now with the output's values as they are held, and none in the snapshot: nothing is copied of a long list.
func (p *Program) NowHeld(t *Thread) (*Snapshot, map[string]Held, error) {
	s, shown, err := now(p, t)
	if err != nil || shown == nil {
		return s, nil, err
	}
	return s, p.held(shown, p.outputs), nil
}

// now is the outline of what Now shows.
func now(p *Program, t *Thread) (*Snapshot, *Checkpoint, error) {
	if s, shown, err := outline(p, t, t.Head, true, nil); err == nil {
		return s, shown, nil
	}
	return outline(p, t, t.Head, false, nil)
}

func snapshot(p *Program, t *Thread, r *Record, newest bool, nodes []string) (*Snapshot, error) {
	s, shown, err := outline(p, t, r, newest, nodes)
	return withValues(p, s, shown, err)
}

// withValues is an outline with its values.
func withValues(p *Program, out *Snapshot, shown *Checkpoint, err error) (*Snapshot, error) {
	switch {
	case err != nil:
		return nil, err
	case shown == nil:
		out.Values = map[string]Value{}
	default:
		out.Values = p.StateOf(shown)
	}
	return out, nil
}

// outline is a snapshot without its values, and the checkpoint that has them; nil for a thread without any.
func outline(p *Program, t *Thread, r *Record, newest bool, nodes []string) (*Snapshot, *Checkpoint, error) {
	if r == nil {
		return &Snapshot{Step: emptyStep, Next: []string{}, Tasks: []TaskSnapshot{}}, nil, nil
	}
	l := &Loop{prog: p, rec: r, work: p.loaded(r.Checkpoint)}
	planned := p.plan(l.work, false)
	// Control writes show in the values, not in what comes next.
	if err := l.applyControl(); err != nil {
		return nil, nil, err
	}
	out := &Snapshot{Checkpoint: r.Checkpoint.ID, Parent: r.Checkpoint.Parent, Source: r.Checkpoint.Source,
		Step: r.Checkpoint.Step, Next: []string{}, Tasks: []TaskSnapshot{}}
	for _, tr := range p.known(r, planned) {
		rec := tr.rec
		if newest && !rec.over() || !newest && tr.of == nil {
			out.Next = append(out.Next, tr.task.Node)
		}
		task := TaskSnapshot{Name: tr.task.Node, Path: tr.task.Path, Done: rec.Done, Questions: rec.Questions, Error: rec.Error,
			State: p.inner(t, rec, nodes)}
		if rec.Done {
			task.Wrote = rec.Update
		}
		if newest && rec.Done {
			task.Questions = nil
			l.tasks = append(l.tasks, &taskRun{task: tr.task, rec: p.tracked(rec), of: tr.of})
		}
		out.Tasks = append(out.Tasks, task)
	}
	shown := l.work
	if parts := l.parts(); len(parts) > 0 {
		var err error
		if shown, err = p.applyAs(asPreview, l.work, parts); err != nil {
			return nil, nil, err
		}
	}
	return out, shown, nil
}

// inner is the state of the subgraph that a task runs, an empty one before it began; nil when there is no subgraph, when
// it keeps no state, and when its writes conflict: the outer state can be shown all the same. No checkpoint of the subgraph
// was asked for by its id, so it is the newest of that task's run, also where the outer checkpoint was named.
func (p *Program) inner(t *Thread, rec *TaskRecord, nodes []string) *Snapshot {
	sub, child := p.childOf(t, rec, nodes)
	if sub == nil || sub.Spec.Memory == MemoryNone {
		return nil
	}
	state, err := snapshot(sub, t, child, true, append(slices.Clip(nodes), rec.Node))
	if err != nil {
		return nil
	}
	return state
}

// Output returns the output channels of a thread's newest checkpoint; nil before the first.
func (p *Program) Output(t *Thread) map[string]Value {
	if t.Head == nil {
		return nil
	}
	return p.OutputOf(t.Head.Checkpoint)
}

// Made returns the nodes whose writes made a record's checkpoint, and the state channels that were written. It is known
// in the process that made it; a stored checkpoint has forgotten it. A fork was made by nobody, an update from outside by
// no node that ran.
func (p *Program) Made(r *Record) (ran, wrote []string) {
	c := r.Checkpoint
	if c.Source == SourceFork {
		return nil, nil
	}
	for _, at := range c.ran {
		if at > 0 && c.Source != SourceUpdate {
			ran = append(ran, p.nodes[at].name)
		}
	}
	for i := range p.state {
		if c.top > 0 && c.versions[i] == c.top && p.channels[i].available(&c.cells[i]) {
			wrote = append(wrote, p.channels[i].name)
		}
	}
	return ran, wrote
}

// Next returns the nodes that a record's checkpoint leads to, in the order of its tasks.
func (p *Program) Next(r *Record) []string {
	var next []string
	for _, s := range r.Checkpoint.cells[p.tasks].sends() {
		if _, takes := p.takes(s); takes {
			next = append(next, s.Node)
		}
	}
	for _, at := range p.candidates(r.Checkpoint, false, nil) {
		if p.triggered(r.Checkpoint, at) {
			next = append(next, p.nodes[at].name)
		}
	}
	return next
}
