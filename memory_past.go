package superstep

import (
	"context"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
)

func (m *Memory) updateState(ctx context.Context, g *graphadapter.Graph, r UpdateRequest) (StateView, error) {
	if err := checkUpdates(g.Spec, r); err != nil {
		return StateView{}, err
	}
	if err := checkAsker(r.Thread, r.By, r.Reason); err != nil {
		return StateView{}, err
	}
	if err := g.CheckUpdates(r.Subgraph, r.Updates); err != nil {
		return StateView{}, err
	}
	t, err := m.thread(g, r.Thread, r.Checkpoint == "")
	if err != nil {
		return StateView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	by, err := t.provenUpdate(ctx, r)
	if err != nil {
		return StateView{}, err
	}
	snapshot, err := m.driver.Thread(g, r.Thread).Telling(&t.effects).Update(ctx, r.Checkpoint, r.Subgraph, r.Updates)
	if err != nil {
		return StateView{}, t.updateError(r, err)
	}
	open, err := m.driver.Thread(g, r.Thread).Questions(ctx)
	if err != nil {
		return StateView{}, err
	}
	t.g = g
	t.updated(snapshot, open)
	t.note(life.EntryUpdated(by, r.Updates, snapshot.Checkpoint, r.Reason))
	if err := t.advance(); err != nil {
		return StateView{}, err
	}
	view := snapshotView(t.graph, t.id, snapshot, false)
	view.Status, view.Questions = t.view.Status, t.view.Questions
	return view, nil
}

// provenUpdate is proven for an update of the state; the first one of a new thread takes no proof.
func (t *memoryThread) provenUpdate(ctx context.Context, r UpdateRequest) (life.Actor, error) {
	may := func() error {
		if t.stands.Status == StatusRunning && !t.held || t.undo != nil {
			return t.refuse(ErrRunning, "its run is still under way: wait for it or drain it, then update its state")
		}
		if c := t.stands.Cancel; c != nil && c.Halted != "" && r.Checkpoint == "" {
			return halted(t.graph, t.id, c.Halted)
		}
		if t.life.State.Paused != nil && t.life.Waiting() {
			return t.refuse(ErrRunning, "it has answers to go on with when it is unpaused: unpause it, then update its state")
		}
		return nil
	}
	if t.done == nil {
		return life.Actor{Claimed: r.By}, may()
	}
	return t.proven(ctx, approval.Control{Op: approval.OpUpdate}, asker{by: r.By, token: r.Token}, may)
}

func (t *memoryThread) updateError(r UpdateRequest, err error) error {
	if len(r.Subgraph) > 0 {
		if _, ok := nodeSubgraph(t.spec, r.Subgraph[0]); !ok {
			return noSubgraph(t.graph, t.id, r.Subgraph, err)
		}
	}
	return refusal(t.graph, t.id, err)
}

// updated notes how the thread stands after an update from outside. It has dropped what it was about to do and to ask,
// unless a subgraph alone was updated.
func (t *memoryThread) updated(s *pregel.Snapshot, open []pregel.OpenQuestion) {
	t.runs++
	t.stands = ThreadView{Thread: t.id, Graph: t.graph, Status: StatusFinished, Output: outputs(t.spec.Output, s.Values), Step: s.Step,
		Started: time.Now(), Closed: time.Now()}
	switch {
	case len(open) > 0:
		t.stands.Status, t.stands.Closed = waitingStatus(open), time.Time{}
	case len(s.Next) > 0:
		t.stands.Status, t.stands.Closed = StatusStopped, time.Time{}
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
	if t.life.Look(); !t.stands.rests() {
		t.life.Unpaused()
	}
}

// outputs are the values that a graph with these output channels shows; nil stands for all channels.
func outputs(names []string, values map[string]pregel.Value) map[string]pregel.Value {
	if names == nil {
		return values
	}
	out := map[string]pregel.Value{}
	for _, name := range names {
		if v, ok := values[name]; ok {
			out[name] = v
		}
	}
	return out
}

func (m *Memory) forkRun(ctx context.Context, g *graphadapter.Graph, r ForkRequest) (ThreadView, error) {
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return ThreadView{}, err
	}
	if r.Checkpoint == "" {
		return ThreadView{}, noCheckpoint(t.graph, t.id, "")
	}
	start := StartRequest{Graph: t.graph, Thread: r.As, Checkpoint: r.Checkpoint, branch: true, By: r.By, Reason: r.Reason, Token: r.Token}
	if r.As == "" {
		start.Thread = t.id
		return m.startRun(ctx, g, start)
	}
	if err := checkStart(start); err != nil {
		return ThreadView{}, err
	}
	if _, err := m.driver.Thread(g, t.id).State(ctx, r.Checkpoint); err != nil {
		return ThreadView{}, refusal(t.graph, t.id, err)
	}
	as, err := m.thread(g, r.As, true)
	if err != nil {
		return ThreadView{}, err
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	by, err := as.proven(ctx, approval.Control{Op: approval.OpFork, On: r.Checkpoint}, asker{by: r.By, token: r.Token}, nil)
	if err != nil {
		return ThreadView{}, err
	}
	fresh, err := m.driver.Thread(g, t.id).Branch(ctx, r.Checkpoint, m.driver.Thread(g, r.As))
	if err != nil {
		return ThreadView{}, refusal(t.graph, t.id, err)
	}
	if !fresh || as.done != nil {
		return ThreadView{}, existsAlready(t.graph, r.As)
	}
	as.options, as.g = start, g
	return as.begin(ctx, pregel.Input{}, r.Checkpoint, life.EntryForked(by, r.Thread, r.Checkpoint, r.Reason))
}
