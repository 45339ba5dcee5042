package taskrun

import (
	"context"
	"errors"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
)

// Update writes to the thread's state from outside, all of the updates or none, and returns it as it is then: to the
// newest checkpoint when checkpoint is "", else to a branch from that one; to the subgraph that is under way in the tasks
// of the nodes of that path, or to the root graph without one. Each list makes one checkpoint. What the thread was about
// to do is dropped, and it goes on as after the nodes of the last list.
//
// Errors: *pregel.InvalidUpdateError, *pregel.NoCheckpointError, or what a branch of a node returned.
func (t *Thread) Update(ctx context.Context, checkpoint string, path []string, supersteps [][]graphadapter.StateUpdate) (*pregel.Snapshot, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	thread, _, err := t.history.from(t.id, checkpoint, pregel.ForEdit)
	if err != nil {
		return nil, err
	}
	made := edits{thread: thread.Copy(), program: program, route: func(task *pregel.Task) ([]pregel.Target, error) {
		o, _ := RunTask(ctx, t.graph, task, Env{Thread: t.id})
		if o.Error != nil {
			return nil, o.Error
		}
		return o.Routes, nil
	}}
	if err := made.all(path, supersteps); err != nil {
		return nil, err
	}
	t.history.thread = made.thread
	made.tell(t.history.past)
	t.history.stands(program, made.thread, made.roots()...)
	return program.Now(made.thread)
}

// Drop forgets what the thread is about to do: see [pregel.Program.Drop]. The error is the cause of ctx while a run has
// the thread.
func (t *Thread) Drop(ctx context.Context) error {
	program, release, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	h := t.history
	program.Drop(h.thread)
	h.dropped = true
	h.past.Began(0, program, h.thread, "")
	h.past.Ended(0, pregel.StatusDrained, h.thread)
	h.stands(program, h.thread)
	return nil
}

// Rewind lets the thread, whose effects have been undone, go on where it was before, and returns the checkpoint that it has
// made: see [GoBack]. The error is the cause
// of ctx while a run has the thread.
func (t *Thread) Rewind(ctx context.Context, to past.Rewound) (*pregel.Record, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	h := t.history
	made := past.GoBack(program, h.thread, to)
	h.dropped = h.dropped && !to.Undone // what runs next has new keys else
	h.past.Began(0, program, h.thread, "")
	if made != nil {
		h.past.Edited(0, "", made)
	}
	h.past.Ended(0, pregel.StatusDrained, h.thread)
	h.stands(program, h.thread)
	return made, nil
}

// KeepUndone is the function of that name for the thread. The error is the cause of ctx while a run has the thread.
func (t *Thread) KeepUndone(ctx context.Context, c Compensation, state ledger.State, evidence string) error {
	_, release, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	return KeepUndone(t.history.thread, c, state, evidence)
}

// TryUpdates applies updates to a copy of a thread, as far as that is possible without evaluating branches, and returns
// why they cannot be applied; nil when they probably can.
func TryUpdates(program *pregel.Program, thread *pregel.Thread, path []string, supersteps [][]graphadapter.StateUpdate) error {
	branches := errors.New("branches are not evaluated")
	made := edits{thread: thread.Copy(), program: program,
		route: func(*pregel.Task) ([]pregel.Target, error) { return nil, branches }}
	if err := made.all(path, supersteps); !errors.Is(err, branches) {
		return err
	}
	return nil
}

// edits are updates on a copy of a thread.
type edits struct {
	thread  *pregel.Thread
	program *pregel.Program
	route   func(*pregel.Task) ([]pregel.Target, error) // evaluates a node's branches
	spaces  []string
	records []*pregel.Record
}

func (m *edits) all(path []string, supersteps [][]graphadapter.StateUpdate) error {
	if len(supersteps) == 0 {
		return &pregel.InvalidUpdateError{Graph: m.program.Spec.Name, Message: "there is no update"}
	}
	for _, updates := range supersteps {
		if err := m.apply(path, updates); err != nil {
			return err
		}
	}
	return nil
}

func (m *edits) apply(path []string, updates []graphadapter.StateUpdate) error {
	e, err := m.program.Edit(m.thread, path, updates)
	if err != nil {
		return err
	}
	var routes [][]pregel.Target
	for _, task := range e.Tasks() {
		targets, err := m.route(task)
		if err != nil {
			return err
		}
		routes = append(routes, targets)
	}
	made, err := e.Apply(routes)
	for _, r := range made {
		m.spaces, m.records = append(m.spaces, e.Namespace()), append(m.records, r)
	}
	return err
}

// roots are the records of the root graph.
func (m *edits) roots() []*pregel.Record {
	var out []*pregel.Record
	for i, r := range m.records {
		if m.spaces[i] == "" {
			out = append(out, r)
		}
	}
	return out
}

// tell notes in a thread's past what the edits made.
func (made *edits) tell(p *past.Past) {
	p.Began(0, made.program, made.thread, "")
	for i, r := range made.records {
		p.Edited(0, made.spaces[i], r)
	}
}

// UpdateState is Update of the root graph with one checkpoint for each update.
func (t *Thread) UpdateState(ctx context.Context, checkpoint string, updates ...graphadapter.StateUpdate) (*pregel.Snapshot, error) {
	supersteps := make([][]graphadapter.StateUpdate, len(updates))
	for i := range updates {
		supersteps[i] = updates[i : i+1]
	}
	return t.Update(ctx, checkpoint, nil, supersteps)
}
