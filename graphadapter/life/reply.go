package life

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// unclaimed reports whether nobody is answering any of the request's questions at this moment.
func (r *Run) unclaimed(a Answer) bool {
	return !slices.ContainsFunc(a.All(), func(one pregel.Answer) bool { return r.claimOf(one.QuestionID) != nil })
}

func (r *Run) verifies(a Answer) *verified {
	v := &verified{req: a, answers: r.gated(a)}
	for _, one := range v.answers {
		o, _ := r.asksFor(one.QuestionID)
		reply, _ := approval.ParseReply(json.RawMessage(one.Value)) // which the refusal of the request has read
		v.asked, v.replies = append(v.asked, o), append(v.replies, reply)
	}
	return v
}

func (r *Run) verification(all []*verified, waits []WaitingReply, by string) *Verification {
	c := &claim{by: by}
	for _, v := range all {
		for _, a := range v.answers {
			c.questions = append(c.questions, a.QuestionID)
		}
	}
	r.claims = append(r.claims, c)
	return &Verification{Request: r.verifyRequest(all), all: all, waits: waits, claim: c}
}

func (r *Run) verifyRequest(all []*verified) graphadapter.VerifyRequest {
	req := graphadapter.VerifyRequest{Graph: r.graph, Thread: r.thread}
	for _, v := range all {
		ones := make([]graphadapter.VerifyOne, len(v.answers))
		for i, o := range v.asked {
			at := slices.IndexFunc(req.Questions, func(q graphadapter.VerifyQuestion) bool { return q.ID == o.ID })
			if at < 0 {
				at = len(req.Questions)
				q := graphadapter.VerifyQuestion{ID: o.ID, Node: o.Node, Action: o.Approval}
				if p := r.PendingOn(o.ID); p != nil {
					q.Asked, q.Votes = p.Asked, p.Votes
				}
				req.Questions = append(req.Questions, q)
			}
			ones[i] = graphadapter.VerifyOne{Question: at, Token: v.req.tokenFor(o.ID), By: v.req.By, Reply: v.replies[i]}
		}
		req.Requests = append(req.Requests, ones)
	}
	return req
}

// Unavailable is the ruling when nobody ruled.
var Unavailable = approval.Ruling{Code: approval.CodeUnavailable,
	Reason: fmt.Sprintf("no worker verified it within %d seconds: nothing was taken, answer again", graphadapter.VerifyWithin/time.Second)}

// ruledReplies counts what a gate has ruled on, and lets others answer.
func (r *Run) ruledReplies(t Turn, word Word, now time.Time) Turn {
	v := t.Verify
	err := word.Err
	if err == nil {
		err = ruledOn(word.Replies, v.all)
	}
	for i, one := range v.all {
		if one.rulings = slices.Repeat([]approval.Ruling{Unavailable}, len(one.answers)); err == nil {
			one.rulings = word.Replies.Rulings[i]
		}
	}
	defer func() {
		r.claims = slices.DeleteFunc(slices.Clone(r.claims), func(other *claim) bool { return other == v.claim })
		r.look = true // time that was over meanwhile counts now
	}()
	if t.command == nil {
		return r.ruledBatch(t, err, now)
	}
	reply, refused := r.count(v.all[0], now)
	if refused == nil && !reply.Repeated {
		reply.Call = v.all[0].req.Call
		r.took(t.command, reply)
	}
	return r.end(t, reply, refused, now)
}

// count takes in what a gate said of a request's answers: all of them count, or none.
func (r *Run) count(v *verified, now time.Time) (AnswerReply, error) {
	if before, again := r.taken(v.req); again {
		return v.req.again(r, before).(AnswerReply), nil
	}
	if err := r.refusal(v.req); err != nil { // what was open may not be any more
		r.refuseAnswer(v.req, err, 1)
		return AnswerReply{}, err
	}
	if done, again := r.repeated(v.req); again {
		return AnswerReply{Question: done.Question, Node: done.Node, Repeated: true}, nil
	}
	if refused, ok := r.disallowed(v); ok {
		r.refuseReply(refused, 1)
		return AnswerReply{}, notCounted(refused)
	}
	reply := AnswerReply{Question: v.req.Question}
	if rest := v.rest(); len(rest.All()) > 0 {
		r.auditAnswers(Actor{Claimed: rest.By}, rest.All(), now)
		reply.Node = r.accept(v.req.ID, rest.All(), now)
		r.State.Given = append(slices.Clip(r.State.Given), rest.All()...)
	}
	for i := range v.answers {
		r.vote(v, i, &reply, now)
	}
	chain := r.Chain
	reply.Audit, reply.Paused = &chain, r.State.Paused != nil
	return reply, nil
}

// rest is the request without its answers to approvals.
func (v *verified) rest() Answer {
	rest := Answer{ID: v.req.ID, By: v.req.By}
	for _, a := range v.req.All() {
		if !slices.ContainsFunc(v.answers, func(g pregel.Answer) bool { return g.QuestionID == a.QuestionID }) {
			rest.Answers = append(rest.Answers, a)
		}
	}
	return rest
}

// disallowed returns why a request's answers do not count, if they do not.
func (r *Run) disallowed(v *verified) (Ruling, bool) {
	var here []string
	for i, ruling := range v.rulings {
		if p := r.PendingOn(v.answers[i].QuestionID); p == nil || p.Digest != v.asked[i].action.Digest() {
			ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeWrongRun, "the question is not asked any more"
		}
		r.once(&ruling, here)
		if !ruling.Allowed {
			ruling.Params = nil
			return Ruling{Question: v.answers[i].QuestionID, Ruling: ruling}, true
		}
		here = append(here, ruling.Token)
	}
	return Ruling{}, false
}

// vote counts one reply that a gate allowed.
func (r *Run) vote(v *verified, i int, reply *AnswerReply, now time.Time) {
	question, o, given, ruling := v.answers[i].QuestionID, v.asked[i], v.replies[i], v.rulings[i]
	p := r.PendingOn(question)
	by := cmp.Or(ruling.By, v.req.By)
	p.Need = max(p.Need, o.action.Needs(ruling.Need))
	cast := ruling.Vote(given)
	cast.By = by
	standing, lapsed := ruling.Standing(p.Votes)
	for _, v := range lapsed {
		r.Note(now, ruling.Lapsed(v, question, o.action))
	}
	votes := append(standing, cast)
	p.Votes = votes
	r.useToken(ruling.Token)
	decision, decided := o.action.Decide(question, votes, p.Need, ruling.Params)
	reply.Node, reply.By, reply.Votes, reply.Need, reply.Decided = o.Node, by, len(votes), p.Need, decided
	if decided {
		r.give(o.OpenQuestion, v.req.ID, pregel.Answer{QuestionID: question, Value: decisionValue(decision), By: by}, now)
		r.settled(question)
	}
	r.Note(now, entryVoted(question, o.action, cast, decided))
	if by := (Actor{Claimed: "rules"}); ruling.Pause != "" && r.setPause(false, Paused{By: by.Name(), Reason: ruling.Pause, At: now}) {
		r.Note(now, by.did(approval.KindPaused, ruling.Pause))
	}
}

func decisionValue(d approval.Decision) pregel.Value {
	text, err := json.Marshal(d)
	if err != nil {
		panic("superstep: a decision always encodes: its parameters were JSON: " + err.Error())
	}
	return text
}

// refuseAnswer counts an answer that was refused before anybody verified it.
func (r *Run) refuseAnswer(c Command, err error, count int) {
	a, ok := c.(Answer)
	if !ok {
		return
	}
	r.refuseReply(rulingOf(named(a.Question), err), count)
}

// rulingOf is why an answer was refused before anybody verified it.
func rulingOf(question string, err error) Ruling {
	refused := Ruling{Question: question}
	var typed *Refusal
	if errors.As(err, &typed) {
		refused.Reason = typed.Message
		if typed.Kind == BadAnswer {
			refused.Code = approval.CodeMalformed
		}
	}
	return refused
}

// refuseReply counts replies that were refused for the same reason. Questions that are not asked are all one.
func (r *Run) refuseReply(a Ruling, count int) {
	question := ""
	if r.PendingOn(a.Question) != nil || slices.ContainsFunc(r.State.Answered, func(g Answered) bool { return g.Question == a.Question }) {
		question = a.Question
	}
	r.trail.Refuse(EntryRefused(question, a.Ruling), count)
}
