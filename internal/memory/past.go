package memory

import (
	"context"
	"iter"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tape"
	"superstep.dev/thread"
)

// UpdateState implements runtime.Runtime.
func (m *Runtime) UpdateState(ctx context.Context, g *graphadapter.Graph, r thread.UpdateRequest) (thread.StateView, error) {
	if err := runtime.CheckUpdates(g.Spec, r); err != nil {
		return thread.StateView{}, err
	}
	if err := runtime.CheckAsker(r.Thread, r.By, r.Reason); err != nil {
		return thread.StateView{}, err
	}
	if err := g.CheckUpdates(r.Subgraph, r.Updates); err != nil {
		return thread.StateView{}, err
	}
	t, err := m.thread(g, r.Thread, r.Checkpoint == "")
	if err != nil {
		return thread.StateView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	by, err := t.provenUpdate(ctx, r)
	if err != nil {
		return thread.StateView{}, err
	}
	snapshot, err := m.driver.Thread(g, r.Thread).Telling(&t.effects).Update(ctx, r.Checkpoint, r.Subgraph, r.Updates)
	if err != nil {
		return thread.StateView{}, t.updateError(r, err)
	}
	open, err := m.driver.Thread(g, r.Thread).Questions(ctx)
	if err != nil {
		return thread.StateView{}, err
	}
	t.g = g
	t.updated(snapshot, open)
	t.note(life.EntryUpdated(by, r.Updates, snapshot.Checkpoint, r.Reason))
	if err := t.advance(); err != nil {
		return thread.StateView{}, err
	}
	view := runtime.SnapshotView(t.graph, t.id, snapshot, false)
	view.Status, view.Questions = t.view.Status, t.view.Questions
	return view, nil
}

// provenUpdate is proven for an update of the state; the first one of a new thread takes no proof.
func (t *threadRun) provenUpdate(ctx context.Context, r thread.UpdateRequest) (life.Actor, error) {
	may := func() error {
		if t.stands.Status == thread.StatusRunning && !t.held || t.life.Undoing() != nil {
			return t.refuse(thread.ErrRunning, "its run is still under way: wait for it or drain it, then update its state")
		}
		if c := t.view.Cancel; c != nil && c.Halted != "" && r.Checkpoint == "" {
			return runtime.Halted(t.graph, t.id, c.Halted)
		}
		if t.life.State.Paused != nil && t.life.Waiting() {
			return t.refuse(thread.ErrRunning, "it has answers to go on with when it is unpaused: unpause it, then update its state")
		}
		return nil
	}
	if t.done == nil {
		return life.Actor{Claimed: r.By}, may()
	}
	return t.proven(ctx, approval.Control{Op: approval.OpUpdate}, runtime.Asker{By: r.By, Token: r.Token}, may)
}

func (t *threadRun) updateError(r thread.UpdateRequest, err error) error {
	if len(r.Subgraph) > 0 {
		if _, ok := runtime.NodeSubgraph(t.spec, r.Subgraph[0]); !ok {
			return runtime.NoSubgraph(t.graph, t.id, r.Subgraph, err)
		}
	}
	return runtime.Refusal(t.graph, t.id, err)
}

// updated notes how the thread stands after an update from outside. It has dropped what it was about to do and to ask,
// unless a subgraph alone was updated.
func (t *threadRun) updated(s *pregel.Snapshot, open []pregel.OpenQuestion) {
	if t.runs++; t.done != nil && !t.stands.Rests() && !t.held { // what a run was told that is over is over, too
		t.listen()
		t.life = life.New(t.id, t.graph, t, t.life.Left())
	}
	t.stands = thread.View{Thread: t.id, Graph: t.graph, Status: thread.StatusFinished, Output: runtime.Outputs(t.spec.Output, s.Values), Step: s.Step,
		Started: time.Now(), Closed: time.Now()}
	switch {
	case len(open) > 0:
		t.stands.Status, t.stands.Closed = runtime.WaitingStatus(open), time.Time{}
	case len(s.Next) > 0:
		t.stands.Status, t.stands.Closed, t.stands.Nodes = thread.StatusStopped, time.Time{}, s.Next
	}
	t.effects.ended(t.stands.Status)
	t.open, t.cause = open, nil
	if t.done == nil {
		t.done = make(chan struct{})
		close(t.done)
	}
	if t.held { // the run at the gate ends
		t.held = false
		t.tape.ends()
		t.gate.Open()
	}
	t.life.GiveAnswers()
	t.life.Reopen(open)
	if t.life.Look(); !t.stands.Rests() {
		t.life.Unpaused()
	}
}

// ForkRun implements runtime.Runtime.
func (m *Runtime) ForkRun(ctx context.Context, g *graphadapter.Graph, r thread.ForkRequest) (thread.View, error) {
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	t.mu.Unlock()
	if err := runtime.CheckFork(t.graph, r); err != nil {
		return thread.View{}, err
	}
	start := runtime.Start{Branch: r.As == "", StartRequest: thread.StartRequest{Graph: t.graph, Thread: r.As, Checkpoint: r.Checkpoint, By: r.By, Reason: r.Reason, Token: r.Token}}
	if r.As == "" {
		start.Thread = t.id
		return m.StartRun(ctx, g, start)
	}
	if err := runtime.CheckStart(start); err != nil {
		return thread.View{}, err
	}
	if _, err := m.driver.Thread(g, t.id).State(ctx, r.Checkpoint); err != nil {
		return thread.View{}, runtime.Refusal(t.graph, t.id, err)
	}
	as, err := m.thread(g, r.As, true)
	if err != nil {
		return thread.View{}, err
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	by, err := as.proven(ctx, approval.Control{Op: approval.OpFork, On: r.Checkpoint}, runtime.Asker{By: r.By, Token: r.Token}, nil)
	if err != nil {
		return thread.View{}, err
	}
	from, fresh, err := m.driver.Thread(g, t.id).Branch(ctx, r.Checkpoint, r.Copy, m.driver.Thread(g, r.As))
	if err != nil {
		return thread.View{}, runtime.Refusal(t.graph, t.id, err)
	}
	if !fresh || as.done != nil {
		return thread.View{}, runtime.ExistsAlready(t.graph, r.As)
	}
	as.options, as.g = start, g
	entry := life.EntryForked(by, r.Thread, from, r.Reason)
	if r.Copy {
		return as.stand(ctx, entry)
	}
	return as.begin(ctx, pregel.Input{}, r.Checkpoint, entry)
}

// stand makes a copy stand where the thread that it was copied from stood; t.mu is held.
func (t *threadRun) stand(ctx context.Context, entry approval.Entry) (thread.View, error) {
	at := t.of.driver.Thread(t.g, t.id).Telling(&t.effects)
	snapshot, err := at.State(ctx, "")
	if err != nil {
		return thread.View{}, runtime.Refusal(t.graph, t.id, err)
	}
	open, err := at.Questions(ctx)
	if err != nil {
		return thread.View{}, err
	}
	t.updated(snapshot, open)
	t.note(entry)
	return t.view, t.advance()
}

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
	made, err := m.driver.Thread(g, r.Thread).SubgraphHistory(ctx, r.Subgraph, r.Checkpoint)
	if err != nil && len(r.Subgraph) > 0 {
		err = runtime.NoSubgraph(t.graph, r.Thread, r.Subgraph, err)
	}
	if err != nil {
		return nil, err
	}
	return runtime.HistoryView(t.graph, made, r)
}

// StreamRun implements runtime.Runtime.
func (m *Runtime) StreamRun(ctx context.Context, g *graphadapter.Graph, r thread.StreamRequest) iter.Seq2[thread.Part, error] {
	if r.Invocation != "" {
		return tape.FailedStream(&thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: "a thread in memory keeps no places of invocations: leave Invocation out"})
	}
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

// OriginOf implements runtime.Runtime.
func (m *Runtime) OriginOf(_ context.Context, g *graphadapter.Graph, threadID, checkpoint string) (past.Origin, error) {
	t, err := m.begun(g, threadID)
	if err != nil {
		return past.Origin{}, err
	}
	defer t.mu.Unlock()
	return t.effects.origin(checkpoint), nil
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
