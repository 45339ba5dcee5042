package graphadapter

import (
	"context"

	"superstep.dev/graphadapter/pregel"
)

// UpdateState writes to the thread's state from outside and returns it as it is then: of the newest checkpoint when
// checkpoint is "", else on a branch from that one. It drops what the thread was about to do, and goes on as after the
// node of the update. Several updates make one checkpoint each.
//
// Errors: *pregel.InvalidUpdateError, *pregel.NoCheckpointError, or what a branch of the node returned.
func (t *Thread) UpdateState(ctx context.Context, checkpoint string, updates ...StateUpdate) (*pregel.Snapshot, error) {
	return t.UpdateSubgraph(ctx, checkpoint, nil, updates...)
}

// UpdateSubgraph is UpdateState for the subgraph that waits in the tasks of the nodes of that path.
func (t *Thread) UpdateSubgraph(ctx context.Context, checkpoint string, path []string, updates ...StateUpdate) (*pregel.Snapshot, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	thread, _, err := t.history.from(t.id, checkpoint)
	if err != nil {
		return nil, err
	}
	made := edits{thread: thread.Copy(), program: program, run: inMemory(t.graph, t.id, RunOptions{})}
	for _, u := range updates {
		if err := made.apply(ctx, path, u); err != nil {
			return nil, err
		}
	}
	t.history.thread = made.thread
	t.history.past.edited(program, made)
	return program.Snapshot(made.thread, made.thread.Head, true)
}

// edits are updates on a copy of a thread.
type edits struct {
	thread  *pregel.Thread
	program *pregel.Program
	run     func(context.Context, *pregel.Task) pregel.Outcome
	spaces  []string
	records []*pregel.Record
}

func (m *edits) apply(ctx context.Context, path []string, u StateUpdate) error {
	e, err := m.program.Edit(m.thread, path, []StateUpdate{u})
	if err != nil {
		return err
	}
	var routes [][]pregel.Target
	for _, task := range e.Tasks() {
		o := m.run(ctx, task)
		if o.Error != nil {
			return o.Error
		}
		routes = append(routes, o.Routes)
	}
	made, err := e.Apply(routes)
	for _, r := range made {
		m.spaces, m.records = append(m.spaces, e.Namespace()), append(m.records, r)
	}
	return err
}

// edited takes in what edits made.
func (p *Past) edited(program *pregel.Program, made edits) {
	p.Began(0, program, made.thread, "")
	for i, r := range made.records {
		p.Edited(0, made.spaces[i], r)
	}
}
