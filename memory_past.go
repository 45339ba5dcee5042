package superstep

import (
	"context"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
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
	if t.view.Status == StatusRunning || t.undo != nil {
		return StateView{}, t.refuse(ErrRunning, "its run is still under way: wait for it or drain it, then update its state")
	}
	if c := t.view.Cancel; c != nil && c.Halted != "" && r.Checkpoint == "" {
		return StateView{}, halted(t.graph, t.id, c.Halted)
	}
	if t.view.Paused != nil && t.pause.answers != nil {
		return StateView{}, t.refuse(ErrRunning, "it has answers to go on with when it is unpaused: unpause it, then update its state")
	}
	by := trail.Actor{Claimed: r.By}
	if t.done != nil {
		by, err = t.proven(ctx, m, approval.Control{Op: approval.OpUpdate}, asker{by: r.By, token: r.Token})
	}
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
	t.audit.note(trail.Updated(by, r.Updates, snapshot.Checkpoint, r.Reason))
	t.updated(snapshot, open)
	view := snapshotView(t.graph, t.id, snapshot, false)
	view.Status, view.Questions = t.view.Status, t.view.Questions
	return view, nil
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
	t.view = ThreadView{Thread: t.id, Graph: t.graph, Status: StatusFinished, Output: outputs(t.spec.Output, s.Values), Step: s.Step,
		Started: time.Now(), Closed: time.Now(), Paused: t.view.Paused}
	switch {
	case len(open) > 0:
		t.view.Status, t.view.Closed = waitingStatus(open), time.Time{}
	case len(s.Next) > 0:
		t.view.Status, t.view.Closed = StatusStopped, time.Time{}
	}
	t.effects.ended(t.view.Status)
	t.view.Questions, t.cause = questionsOf(forPeople(open)), nil
	t.view.Waits = waitViews(forEvents(open), func(id string) time.Time { return t.events.due[id] })
	all := make([]pregel.Question, len(open))
	for i, q := range open {
		all[i] = q.Question
	}
	t.open, t.events.waits = splitQuestions(all)
	if t.done == nil {
		t.done = make(chan struct{})
		close(t.done)
	}
	t.pause.superseded(t)
	if t.events.again != nil { // a thread that began with this update waits for nothing
		t.attend()
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
	by, err := as.proven(ctx, m, approval.Control{Op: approval.OpFork, On: r.Checkpoint}, asker{by: r.By, token: r.Token})
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
	as.options = start
	return as.begin(ctx, m, g, pregel.Input{}, r.Checkpoint, trail.Forked(by, r.Thread, r.Checkpoint, r.Reason))
}

func (m *Memory) drainRun(ctx context.Context, g *graphadapter.Graph, r DrainRequest) (ThreadView, error) {
	if err := checkDrain(&r); err != nil {
		return ThreadView{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return ThreadView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.view.Status == StatusRunning {
		by, err := t.proven(ctx, m, approval.Control{Op: approval.OpDrain}, asker{by: r.By, token: r.Token})
		if err != nil {
			return t.view, err
		}
		select {
		case t.drain <- r.Reason:
			t.audit.note(trail.Drained(by, r.Reason))
		default: // it has been asked already
		}
	}
	return t.view, nil
}
