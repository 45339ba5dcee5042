package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

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

// replyTo is what whoever answers is told.
func (t *threadRun) replyTo(done life.AnswerReply, several []string) thread.ResumeReply {
	return thread.ResumeReply{Thread: t.id, Question: done.Question, Questions: several, Node: done.Node, Accepted: !done.Repeated,
		Repeated: done.Repeated, By: done.By, Votes: done.Votes, Need: done.Need}
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
