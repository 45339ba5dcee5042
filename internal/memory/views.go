package memory

import (
	"context"
	"iter"
	"slices"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tape"
	"superstep.dev/thread"
)

// StateOf implements runtime.Runtime.
func (m *Runtime) StateOf(ctx context.Context, g *graphadapter.Graph, r thread.StateRequest) (thread.StateView, error) {
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return thread.StateView{}, err
	}
	t.mu.Unlock()
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
	t, err := m.begun(g, threadID)
	if err != nil {
		return thread.View{}, err
	}
	defer t.mu.Unlock()
	return t.view, nil
}

// HistoryOf implements runtime.Runtime.
func (m *Runtime) HistoryOf(ctx context.Context, g *graphadapter.Graph, r thread.HistoryRequest) ([]thread.CheckpointView, error) {
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return nil, err
	}
	t.mu.Unlock()
	past, err := m.driver.Thread(g, r.Thread).SubgraphHistory(ctx, r.Subgraph)
	if err != nil && len(r.Subgraph) > 0 {
		err = runtime.NoSubgraph(t.graph, r.Thread, r.Subgraph, err)
	}
	if err != nil {
		return nil, err
	}
	return runtime.HistoryView(t.graph, past, r)
}

// StreamRun implements runtime.Runtime.
func (m *Runtime) StreamRun(ctx context.Context, g *graphadapter.Graph, r thread.StreamRequest) iter.Seq2[thread.Part, error] {
	from, err := tape.CheckStream(&r)
	if err != nil {
		return tape.FailedStream(err)
	}
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return tape.FailedStream(err)
	}
	return func(yield func(thread.Part, error) bool) {
		run, known := t.tape.first(from)
		if !known {
			yield(thread.Part{}, &thread.Error{Kind: thread.ErrBadInput, Graph: t.graph, Thread: t.id, Message: "the thread has no such place in its streams"})
			return
		}
		t.tape.play(ctx, r, run, from, yield)
	}
}

// EffectsOf implements runtime.Runtime.
func (m *Runtime) EffectsOf(_ context.Context, g *graphadapter.Graph, threadID string) (thread.EffectsView, error) {
	t, err := m.begun(g, threadID)
	if err != nil {
		return thread.EffectsView{}, err
	}
	defer t.mu.Unlock()
	return thread.EffectsView{Thread: t.id, Graph: t.graph, Status: t.view.Status, Effects: runtime.EffectsView(t.effects.records())}, nil
}

// ExportOf implements runtime.Runtime.
func (m *Runtime) ExportOf(ctx context.Context, g *graphadapter.Graph, thread string) (approval.Export, error) {
	var x approval.Export
	var err error
	if x.Entries, x.Chain, err = m.AuditOf(ctx, g, thread); err != nil || m.Heads == nil {
		return x, err
	}
	x.Signed, err = m.Heads.SignHead(approval.Head{Thread: thread, Chain: x.Chain})
	return x, err
}

// AuditOf implements runtime.Runtime.
func (m *Runtime) AuditOf(_ context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
	t, err := m.begun(g, thread)
	if err != nil {
		return nil, approval.Chain{}, err
	}
	defer t.mu.Unlock()
	t.listen()
	return slices.Clone(t.entries), t.life.Chain, nil
}
