package superstep

import (
	"context"
	"maps"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// memoryPause is what a thread in memory has to know of its pauses. It is guarded by the thread's lock.
type memoryPause struct {
	gate *graphadapter.Barrier // the newest run's
	// held says that the run stands at its gate, and under is the status of one that rests otherwise.
	held  bool
	under Status
	// answers were taken while the run was paused, and not given to it yet.
	answers []pregel.Answer
	seen    []string
}

func (m *Memory) pauseRun(ctx context.Context, g *graphadapter.Graph, r PauseRequest, unpause bool) (PauseReply, error) {
	if err := checkPause(r); err != nil {
		return PauseReply{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return PauseReply{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	again := r.ID != "" && slices.Contains(t.pause.seen, r.ID)
	open := t.undo == nil && (t.view.Status == StatusRunning || t.view.rests())
	by := trail.Actor{Claimed: r.By}
	if !again && open {
		if by, err = t.proven(ctx, m, t.pauseControl(unpause), asker{by: r.By, token: r.Token}); err != nil {
			return PauseReply{}, err
		}
		r.By = by.Name()
	}
	if r.ID != "" && !again {
		t.pause.seen = append(t.pause.seen, r.ID)
	}
	reply := PauseReply{Thread: t.id}
	if !again && open && unpause != (t.view.Paused == nil) {
		reply.Changed = true
		if unpause {
			t.audit.note(trail.Unpaused(by, r.Reason))
			err = t.goOn(ctx, m, g)
		} else {
			t.view.Paused = &PauseView{By: r.By, Reason: r.Reason, At: time.Now()}
			t.audit.note(trail.Paused(by, r.Reason))
			t.pause.rests(t)
		}
	}
	reply.Status, reply.Paused = t.view.Status, t.view.Paused
	return reply, err
}

// pauseControl is what a pause, or its end, does to the thread.
func (t *memoryThread) pauseControl(unpause bool) approval.Control {
	c := approval.Control{Op: approval.OpPause}
	if unpause {
		c.Op = approval.OpUnpause
		if t.view.Paused != nil {
			c.On = approval.PausedAt(t.view.Paused.At)
		}
	}
	return c
}

// rests makes a pause the status of a run that rests, and shuts the gate of one that does not.
func (p *memoryPause) rests(t *memoryThread) {
	switch {
	case t.view.Paused == nil:
	case t.view.Status == StatusRunning:
		p.gate.Shut()
	case t.view.rests():
		p.under, t.view.Status = t.view.Status, StatusPaused
	default: // it is over
		t.view.Paused = nil
	}
}

// held notes that the run of that number stands at its gate.
func (t *memoryThread) held(number int, s *pregel.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs != number || t.view.Paused == nil || t.view.Status != StatusRunning {
		return // it goes on at once
	}
	t.pause.held, t.view.Status = true, StatusPaused
	t.view.Step, t.view.Nodes, t.view.Output = s.Step+1, s.Next, outputs(t.spec.Output, s.Values)
	close(t.done)
}

// goOn takes the pause back; t.mu is held.
func (t *memoryThread) goOn(ctx context.Context, m *Memory, g *graphadapter.Graph) error {
	given := t.pause.answers
	t.pause.forget(t)
	if given == nil {
		return nil
	}
	_, err := t.begin(ctx, m, g, pregel.Input{Resume: &pregel.Resume{Answers: given}}, "")
	return err
}

// forget takes the pause back: the run is as it would be without.
func (p *memoryPause) forget(t *memoryThread) {
	if t.view.Paused == nil {
		return
	}
	t.view.Paused = nil
	switch {
	case p.held:
		t.view.Status, t.done = StatusRunning, make(chan struct{})
	case t.view.Status == StatusPaused:
		t.view.Status = p.under
	}
	if p.gate != nil { // a thread that began with an update has none
		p.gate.Open()
	}
	p.held = false
}

// keep takes answers in that count once the run goes on.
func (p *memoryPause) keep(t *memoryThread, byID map[string]pregel.Value) {
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		p.answers = append(p.answers, pregel.Answer{QuestionID: id, Value: byID[id]})
	}
	t.open = slices.DeleteFunc(slices.Clone(t.open), func(q pregel.Question) bool { _, given := byID[q.ID]; return given })
	t.view.Questions = slices.DeleteFunc(slices.Clone(t.view.Questions), func(q Question) bool { _, given := byID[q.ID]; return given })
}

// superseded keeps a thread paused that was updated meanwhile, and ends the run that stood at its gate.
func (p *memoryPause) superseded(t *memoryThread) {
	if p.held {
		p.held = false
		t.tape.ends()
		p.gate.Open()
	}
	p.answers = nil
	p.rests(t)
}

// busy says why the thread takes nothing new to do; nil when it does.
func (t *memoryThread) busy() error {
	switch {
	case t.view.Paused != nil && (t.view.Status == StatusRunning || t.view.Status == StatusPaused):
		return t.refuse(ErrRunning, "its run is paused: unpause or cancel it first")
	case t.undo != nil:
		return t.refuse(ErrRunning, "its run is being cancelled, and waits for a person to decide about its effects")
	case t.view.Status == StatusRunning:
		return t.refuse(ErrRunning, "its run is still under way: wait for it or cancel it")
	}
	return nil
}
