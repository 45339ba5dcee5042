package memory

import (
	"context"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// StateOf implements runtime.Runtime.
func (m *Runtime) StateOf(ctx context.Context, g *graphadapter.Graph, r thread.StateRequest) (thread.StateView, error) {
	t, err := m.Begun(g, r.Thread)
	if err != nil {
		return thread.StateView{}, err
	}
	snapshot, err := m.driver.Thread(g, r.Thread).State(ctx, r.Checkpoint)
	if err != nil {
		return thread.StateView{}, runtime.Refusal(t.graph, t.id, err)
	}
	when, err := m.driver.Thread(g, r.Thread).When(ctx, snapshot.Checkpoint)
	if err != nil {
		return thread.StateView{}, runtime.Refusal(t.graph, t.id, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, err := runtime.StateView(t.graph, snapshot, r)
	out = runtime.Dated(out, r, when)
	out.Status = t.view.Status
	if r.Checkpoint == "" {
		out.Questions = slices.Clone(t.view.Questions)
	}
	return out, err
}

// ShowRun implements runtime.Runtime.
func (m *Runtime) ShowRun(_ context.Context, g *graphadapter.Graph, threadID string) (thread.View, error) {
	t, err := m.Begun(g, threadID)
	if err != nil {
		return thread.View{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view, nil
}

// Begun returns a thread that has checkpoints, or a run that is about to make some.
func (m *Runtime) Begun(g *graphadapter.Graph, id string) (*memoryThread, error) {
	t, err := m.thread(g, id, false)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		return nil, t.refuse(thread.ErrNotFound, "it has never run")
	}
	return t, nil
}

// HistoryOf implements runtime.Runtime.
func (m *Runtime) HistoryOf(ctx context.Context, g *graphadapter.Graph, r thread.HistoryRequest) ([]thread.CheckpointView, error) {
	t, err := m.Begun(g, r.Thread)
	if err != nil {
		return nil, err
	}
	past, err := m.driver.Thread(g, r.Thread).SubgraphHistory(ctx, r.Subgraph)
	if err != nil && len(r.Subgraph) > 0 {
		err = runtime.NoSubgraph(t.graph, r.Thread, r.Subgraph, err)
	}
	if err != nil {
		return nil, err
	}
	return runtime.HistoryView(t.graph, past, r)
}
