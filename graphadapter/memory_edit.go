package graphadapter

import (
	"context"
	"slices"

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
	for _, u := range updates {
		if err := t.edit(ctx, program, thread, path, u); err != nil {
			return nil, err
		}
	}
	return program.Snapshot(thread, thread.Head, true)
}

func (t *Thread) edit(ctx context.Context, program *pregel.Program, thread *pregel.Thread, path []string, u StateUpdate) error {
	var e *pregel.Edit
	var err error
	space := ""
	if len(path) == 0 {
		e, err = program.Edit(thread, u.Values, u.AsNode)
	} else if _, space, err = program.Within(thread, path); err == nil {
		e, err = program.EditWithin(thread, path, u.Values, u.AsNode)
	}
	if err != nil {
		return err
	}
	var routes []pregel.Target
	if task := e.Task(); task != nil {
		o := inMemory(t.graph, t.id, nil)(ctx, task)
		if o.Error != nil {
			return o.Error
		}
		routes = o.Routes
	}
	r, err := e.Apply(routes)
	if err != nil {
		return err
	}
	t.history.thread = thread
	if space == "" {
		t.history.records = append(t.history.records, r)
	} else {
		t.history.within[space] = append(t.history.within[space], r)
	}
	return nil
}

// SubgraphHistory returns the checkpoints of the subgraph that waits in the tasks of the nodes of that path, newest
// first.
func (t *Thread) SubgraphHistory(ctx context.Context, path []string) ([]*pregel.Snapshot, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	sub, space, err := program.Within(t.history.thread, path)
	if err != nil {
		return nil, err
	}
	var out []*pregel.Snapshot
	for _, r := range slices.Backward(t.history.within[space]) {
		s, err := sub.Snapshot(t.history.thread, r, false)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
