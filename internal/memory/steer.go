package memory

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// PauseRun implements runtime.Runtime.
func (m *Runtime) PauseRun(ctx context.Context, g *graphadapter.Graph, r thread.PauseRequest, unpause bool) (thread.PauseReply, error) {
	if err := runtime.CheckPause(r); err != nil {
		return thread.PauseReply{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return thread.PauseReply{}, err
	}
	defer t.mu.Unlock()
	var taken life.PauseReply
	if t.life.Undoing() == nil && (t.stands.Status == thread.StatusRunning || t.stands.Rests()) {
		reply, err := t.take(ctx, life.Pause{ID: cmp.Or(r.ID, uuid.NewString()), By: r.By, Reason: r.Reason, Token: r.Token, Unpause: unpause})
		if err != nil {
			return thread.PauseReply{}, err
		}
		taken, _ = reply.(life.PauseReply)
		err = t.advance()
		return thread.PauseReply{Thread: t.id, Status: t.view.Status, Paused: t.view.Paused, Changed: taken.Changed}, err
	}
	return thread.PauseReply{Thread: t.id, Status: t.view.Status}, nil
}

// EventRun implements runtime.Runtime.
func (m *Runtime) EventRun(ctx context.Context, g *graphadapter.Graph, r thread.EventRequest) (thread.EventReply, error) {
	if err := runtime.CheckEvent(r); err != nil {
		return thread.EventReply{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return thread.EventReply{}, err
	}
	defer t.mu.Unlock()
	reply := thread.EventReply{Thread: t.id, Event: r.Name}
	if t.stands.Status != thread.StatusRunning && !t.stands.Rests() {
		if taken, again := t.life.TakenEvent(r.ID); again {
			reply.Nodes, reply.Repeated = taken.Nodes, true
			return reply, nil
		}
		return thread.EventReply{}, t.refuse(thread.ErrAnswerRefused, "it takes no event: its run is "+string(t.view.Status))
	}
	taken, err := t.take(ctx, life.Event{ID: cmp.Or(r.ID, uuid.NewString()), Name: r.Name, Value: pregel.Value(r.Value), By: r.By, Token: r.Token})
	if err != nil {
		return thread.EventReply{}, err
	}
	if event, ok := taken.(life.EventReply); ok {
		reply.Nodes, reply.Repeated = event.Nodes, event.Repeated
	}
	return reply, t.advance()
}

// RetryRun implements runtime.Runtime.
func (m *Runtime) RetryRun(ctx context.Context, g *graphadapter.Graph, r thread.RetryRequest) (thread.View, error) {
	if err := runtime.CheckAsker(r.Thread, r.By, r.Reason); err != nil {
		return thread.View{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	defer t.mu.Unlock()
	if err := t.mayBegin(pregel.Input{}, ""); err != nil {
		return t.view, err
	}
	if _, err := t.take(ctx, life.Retry{ID: uuid.NewString(), By: r.By, Reason: r.Reason, Token: r.Token}); err != nil {
		return t.view, err
	}
	err = t.advance()
	return t.view, err
}

// DrainRun implements runtime.Runtime.
func (m *Runtime) DrainRun(ctx context.Context, g *graphadapter.Graph, r thread.DrainRequest) (thread.View, error) {
	if err := runtime.CheckDrain(&r); err != nil {
		return thread.View{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	defer t.mu.Unlock()
	if t.stands.Status != thread.StatusRunning && !t.stands.Rests() {
		return t.view, nil
	}
	if _, err := t.take(ctx, life.Drain{Reason: r.Reason, By: r.By, Token: r.Token}); err != nil {
		return t.view, err
	}
	if t.stands.Status == thread.StatusRunning {
		t.drains()
	}
	return t.view, nil
}
