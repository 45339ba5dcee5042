package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
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
		reply.Nodes, reply.Repeated, reply.Paused = event.Nodes, event.Repeated, event.Paused
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

// ResumeRun implements runtime.Runtime.
func (m *Runtime) ResumeRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (thread.ResumeReply, error) {
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	if err := t.settle(ctx); err != nil {
		return thread.ResumeReply{}, err
	}
	defer t.mu.Unlock()
	t.g = g
	if before, again := t.life.TakenAnswer(r.ID); again {
		return t.replyTo(before, slices.Sorted(maps.Keys(r.Answers))), nil
	}
	if !t.stands.Rests() {
		return thread.ResumeReply{}, runtime.AnsweredBefore(t.graph, t.id, string(t.view.Status), r.Question, t.life.State.Answered)
	}
	req, err := t.match(r)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	taken, err := t.take(ctx, req)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	done, _ := taken.(life.AnswerReply)
	var several []string
	for _, one := range req.Answers {
		several = append(several, one.QuestionID)
	}
	reply := t.replyTo(done, several)
	if u := t.life.Undoing(); u != nil {
		u.Rule(time.Now())
		t.act(t.life.Actions())
		t.undoEffects(ctx, u)
		return reply, nil
	}
	return reply, t.advance()
}

// AnswerRun implements runtime.Runtime.
func (m *Runtime) AnswerRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (runtime.Rest, error) {
	if _, err := m.ResumeRun(ctx, g, r); err != nil {
		return runtime.Rest{}, err
	}
	return runtime.Resting(m.WaitRun(ctx, g, r.Thread))
}

// replyTo is what whoever answers is told.
func (t *threadRun) replyTo(done life.AnswerReply, several []string) thread.ResumeReply {
	return thread.ResumeReply{Thread: t.id, Question: done.Question, Questions: several, Node: done.Node, Accepted: !done.Repeated,
		Repeated: done.Repeated, By: done.By, Votes: done.Votes, Need: done.Need, Paused: done.Paused}
}

// match finds the open question of each answer, and sorts the tokens by those questions.
func (t *threadRun) match(r thread.ResumeRequest) (life.Answer, error) {
	open := protocol.State{Status: string(t.view.Status), Questions: t.life.Questions(), Waits: t.life.Waits(), Answered: t.life.State.Answered}
	req := life.Answer{ID: r.ID, By: r.By, Token: r.Token}
	if r.Answers == nil {
		id, err := runtime.ResolveQuestion(t.graph, t.id, open, r.Question)
		req.Question, req.Value = id, pregel.Value(r.Value)
		return req, err
	}
	if len(r.Answers) == 0 {
		return req, t.refuse(thread.ErrBadInput, "there is no answer: look at what is open")
	}
	req.Tokens = map[string]string{}
	for _, named := range slices.Sorted(maps.Keys(r.Answers)) {
		id, err := runtime.ResolveQuestion(t.graph, t.id, open, named)
		if err != nil {
			return req, err
		}
		req.Answers = append(req.Answers, pregel.Answer{QuestionID: id, Value: pregel.Value(r.Answers[named])})
		if token, given := r.Tokens[named]; given {
			req.Tokens[id] = token
		}
	}
	return req, nil
}
