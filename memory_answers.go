package superstep

import (
	"context"
	"maps"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

func (m *Memory) resumeRun(ctx context.Context, g *graphadapter.Graph, thread string, a answers) (ResumeReply, error) {
	t, err := m.thread(g, thread, false)
	if err != nil {
		return ResumeReply{}, err
	}
	if err := t.settle(ctx); err != nil {
		return ResumeReply{}, err
	}
	defer t.mu.Unlock()
	t.g = g
	if before, again := t.life.TakenAnswer(a.id); again {
		return t.replyTo(before, slices.Sorted(maps.Keys(a.byID))), nil
	}
	if !t.stands.rests() {
		last := &lastRun{thread: t.id, graph: t.graph}
		return ResumeReply{}, answeredBefore(last, string(t.view.Status), a.question, t.life.State.Answered)
	}
	req, err := t.match(a)
	if err != nil {
		return ResumeReply{}, err
	}
	taken, err := t.take(ctx, req)
	if err != nil {
		return ResumeReply{}, err
	}
	done, _ := taken.(life.AnswerReply)
	var several []string
	for _, one := range req.Answers {
		several = append(several, one.QuestionID)
	}
	reply := t.replyTo(done, several)
	if t.undo != nil {
		t.rule(ctx, t.life.GiveAnswers())
		return reply, nil
	}
	return reply, t.advance()
}

// replyTo is what whoever answers is told.
func (t *memoryThread) replyTo(done life.AnswerReply, several []string) ResumeReply {
	return ResumeReply{Thread: t.id, Question: done.Question, Questions: several, Node: done.Node, Accepted: !done.Repeated,
		Repeated: done.Repeated, By: done.By, Votes: done.Votes, Need: done.Need}
}

// match finds the open question of each answer, and sorts the tokens by those questions.
func (t *memoryThread) match(a answers) (life.Answer, error) {
	last := &lastRun{thread: t.id, graph: t.graph}
	open := protocol.State{Status: string(t.view.Status), Questions: t.life.Questions(), Waits: t.life.Waits(), Answered: t.life.State.Answered}
	req := life.Answer{ID: a.id, By: a.by, Token: a.token}
	if a.byID == nil {
		id, err := resolveQuestion(last, open, a.question)
		req.Question, req.Value = id, pregel.Value(a.only)
		return req, err
	}
	if len(a.byID) == 0 {
		return req, t.refuse(ErrBadInput, "there is no answer: look at what is open")
	}
	req.Tokens = map[string]string{}
	for _, named := range slices.Sorted(maps.Keys(a.byID)) {
		id, err := resolveQuestion(last, open, named)
		if err != nil {
			return req, err
		}
		req.Answers = append(req.Answers, pregel.Answer{QuestionID: id, Value: pregel.Value(a.byID[named])})
		if token, given := a.tokens[named]; given {
			req.Tokens[id] = token
		}
	}
	return req, nil
}
