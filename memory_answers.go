package superstep

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

func (m *Memory) resumeRun(ctx context.Context, g *graphadapter.Graph, thread string, a answers) (ResumeReply, error) {
	t, err := m.thread(g, thread, false)
	if err != nil {
		return ResumeReply{}, err
	}
	if reply, again := t.requests.taken(a.id); again {
		return reply, nil
	}
	if err := t.settle(ctx); err != nil {
		return ResumeReply{}, err
	}
	defer t.mu.Unlock()
	if reply, again := t.requests.taken(a.id); again { // while this call waited
		return reply, nil
	}
	byID, err := t.match(&a)
	if err != nil {
		return ResumeReply{}, err
	}
	by, err := t.provenAnswers(ctx, m, byID, a)
	if err != nil {
		return ResumeReply{}, err
	}
	if by.Name() != "" {
		a.by = by.Name()
	}
	reply := t.replyTo(byID, a)
	if err := t.resume(ctx, m, g, byID, a, by, &reply); err != nil {
		return ResumeReply{}, err
	}
	t.requests.took(a.id, reply)
	return reply, nil
}

// replyTo is what whoever answers is told.
func (t *memoryThread) replyTo(byID map[string]pregel.Value, a answers) ResumeReply {
	reply := ResumeReply{Thread: t.id, Accepted: true}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if at := slices.IndexFunc(t.view.Questions, func(q Question) bool { return q.ID == id }); at >= 0 {
			reply.Node = t.view.Questions[at].Node
		}
		if a.several {
			reply.Questions = append(reply.Questions, id)
		} else {
			reply.Question = id
		}
	}
	return reply
}

// memoryRequests are the answers by request id that a thread took, the latest of them.
type memoryRequests struct {
	mu    sync.Mutex
	byID  map[string]ResumeReply
	order []string
}

// maxMemoryRequests bounds them; a run on Temporal remembers as many.
const maxMemoryRequests = 1000

// taken finds a request that was taken before.
func (r *memoryRequests) taken(id string) (ResumeReply, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, again := r.byID[id]
	reply.Accepted, reply.Repeated = false, again
	return reply, again
}

func (r *memoryRequests) took(id string, reply ResumeReply) {
	if id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]ResumeReply{}
	}
	r.byID[id] = reply
	if r.order = append(r.order, id); len(r.order) > maxMemoryRequests {
		delete(r.byID, r.order[0])
		r.order = r.order[1:]
	}
}

// resume goes on with answers that fit; t.mu is held.
func (t *memoryThread) resume(ctx context.Context, m *Memory, g *graphadapter.Graph, byID map[string]pregel.Value, a answers, by trail.Actor, reply *ResumeReply) (err error) {
	if t.undo != nil {
		t.noteAnswers(byID, by)
		t.rule(ctx, m.driver.Thread(g, t.id), g, byID, a.by)
		return nil
	}
	if byID, err = t.decide(ctx, m, g, byID, a, by, reply); err != nil || len(byID) == 0 {
		return err
	}
	if t.view.Paused != nil {
		t.pause.keep(t, byID)
		return nil
	}
	_, err = t.begin(ctx, m, g, pregel.Input{Resume: &pregel.Resume{ByID: byID}}, "")
	return err
}

// noteAnswers notes who answers questions that ask for no approval.
func (t *memoryThread) noteAnswers(byID map[string]pregel.Value, by trail.Actor) {
	for _, q := range t.open {
		if value, given := byID[q.ID]; given && q.Approval == nil {
			t.audit.note(trail.Answered(by, q, value))
		}
	}
}

// checkAnswers refuses answers that do not fit the open questions they are for. Those of unknown questions answer
// nothing.
func (t *memoryThread) checkAnswers(resume *pregel.Resume) error {
	for _, q := range t.events.waits {
		if _, given := answerTo(resume, q.ID, len(t.open) == 0); given {
			return waitsForEvent(t.graph, t.id, q)
		}
	}
	for i, q := range t.open {
		given, ok := answerTo(resume, q.ID, i == 0)
		if !ok {
			continue
		}
		if q.Approval != nil {
			continue // a decision, made of replies that were checked
		}
		if err := graphadapter.CheckAnswer(q, given); err != nil {
			return badAnswer(t.graph, t.id, q.ID, err)
		}
	}
	return nil
}

// match finds the open question of each answer and checks the answers: all fit or none is taken. It sorts the tokens by
// those questions.
func (t *memoryThread) match(a *answers) (map[string]pregel.Value, error) {
	if a.several = a.byID != nil; a.question != "" {
		a.byID = map[string]json.RawMessage{a.question: a.only}
	}
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		if err := t.alreadyAnswered(id); err != nil {
			return nil, err
		}
	}
	if len(t.open) == 0 && len(t.events.waits) > 0 {
		return nil, t.refuse(ErrAnswerRefused, fmt.Sprintf("it waits for the event %q, not for a person: send that event", t.events.waits[0].Event))
	}
	if len(t.open) == 0 {
		return nil, t.refuse(ErrAnswerRefused, "no question is open")
	}
	if a.byID == nil {
		if len(t.open) > 1 {
			return nil, t.refuse(ErrBadInput,
				fmt.Sprintf("%d questions are open: answer by id, one of %s", len(t.open), t.openIDs()))
		}
		a.byID = map[string]json.RawMessage{t.open[0].ID: a.only}
	}
	if len(a.byID) == 0 {
		return nil, t.refuse(ErrBadInput, "there is no answer: open are "+t.openIDs())
	}
	out, tokens := make(map[string]pregel.Value, len(a.byID)), map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		q, err := t.question(id)
		if err != nil {
			return nil, err
		}
		if _, twice := out[q.ID]; twice {
			return nil, t.refuse(ErrBadInput, fmt.Sprintf("question %s is answered twice", q.ID))
		}
		if err := graphadapter.CheckAnswer(q, a.byID[id]); err != nil {
			return nil, badAnswer(t.graph, t.id, q.ID, err)
		}
		out[q.ID] = a.byID[id]
		if token, given := a.tokens[id]; given {
			tokens[q.ID] = token
		} else if !a.several {
			tokens[q.ID] = a.token
		}
	}
	a.tokens = tokens
	return out, nil
}

// question finds an open question by its id or an unambiguous beginning of it.
func (t *memoryThread) question(id string) (pregel.Question, error) {
	var found []pregel.Question
	for _, q := range t.open {
		if q.ID == id {
			return q, nil
		}
		if id != "" && strings.HasPrefix(q.ID, id) {
			found = append(found, q)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	for _, q := range t.events.waits {
		if q.ID == id {
			return q, waitsForEvent(t.graph, t.id, q)
		}
	}
	return pregel.Question{}, &Error{Kind: ErrAnswerRefused, Graph: t.graph, Thread: t.id, Question: id,
		Message: fmt.Sprintf("thread %q: no open question has the id %q: open are %s", t.id, id, t.openIDs())}
}

func (t *memoryThread) openIDs() string {
	ids := make([]string, len(t.open))
	for i, q := range t.open {
		ids[i] = q.ID
	}
	return strings.Join(ids, ", ")
}
