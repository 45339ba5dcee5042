package workflows

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// count takes in what a gate said of a request's answers: all of them count, or none. Those that decide, and its answers
// to other questions, are for the engine, in into.
func (r *run) count(ctx workflow.Context, v *verified, into *[]protocol.ResumeRequest) (protocol.ResumeReply, error) {
	if err := r.refusal(v.req); err != nil { // what was open may not be any more
		r.refuseReply(refusalOf(v.answers[0].QuestionID, err), 1)
		return protocol.ResumeReply{}, err
	}
	if done, ok := r.repeated(v.req); ok {
		return protocol.ResumeReply{Question: done.Question, Node: done.Node, Repeated: true}, nil
	}
	if refused, ok := r.disallowed(v); ok {
		r.refuseReply(refused, 1)
		return protocol.ResumeReply{}, notCounted(refused)
	}
	reply := protocol.ResumeReply{Question: v.req.Question}
	if rest := v.rest(); len(rest.All()) > 0 {
		r.auditAnswers(ctx, trail.Actor{Claimed: rest.By}, rest.All())
		reply.Node = r.accept(ctx, v.req.ID, rest.All())
		*into = append(*into, rest)
	}
	for i := range v.answers {
		r.vote(ctx, v, i, into, &reply)
	}
	chain := r.approvals.Chain
	reply.Audit = &chain
	return reply, nil
}

// rest is the request without its answers to approvals.
func (v *verified) rest() protocol.ResumeRequest {
	rest := protocol.ResumeRequest{ID: v.req.ID, By: v.req.By}
	for _, a := range v.req.All() {
		if !slices.ContainsFunc(v.answers, func(g pregel.Answer) bool { return g.QuestionID == a.QuestionID }) {
			rest.Answers = append(rest.Answers, a)
		}
	}
	return rest
}

// disallowed returns why a request's answers do not count, if they do not.
func (r *run) disallowed(v *verified) (protocol.AnswerRefusal, bool) {
	var here []string
	for i, ruling := range v.rulings {
		p := r.pending(v.answers[i].QuestionID)
		switch {
		case p == nil || p.Digest != v.asked[i].action.Digest():
			ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeWrongRun, "the question is not asked any more"
		case ruling.Allowed && ruling.Token != "" && (slices.Contains(r.approvals.Used, ruling.Token) || slices.Contains(here, ruling.Token)):
			ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeUsed, "the token was used before: a token counts once"
		}
		if !ruling.Allowed {
			ruling.Params = nil
			return protocol.AnswerRefusal{Question: v.answers[i].QuestionID, Ruling: ruling}, true
		}
		here = append(here, ruling.Token)
	}
	return protocol.AnswerRefusal{}, false
}

// vote counts one reply that a gate allowed.
func (r *run) vote(ctx workflow.Context, v *verified, i int, into *[]protocol.ResumeRequest, reply *protocol.ResumeReply) {
	question, o, given, ruling := v.answers[i].QuestionID, v.asked[i], v.replies[i], v.rulings[i]
	p := r.pending(question)
	by := cmp.Or(ruling.By, v.req.By)
	p.Need = max(p.Need, o.action.Needs(ruling.Need))
	cast := ruling.Vote(given)
	cast.By = by
	standing, lapsed := ruling.Standing(p.Votes)
	for _, v := range lapsed {
		r.audit(ctx, v.Lapsed(question, o.action))
	}
	votes := append(standing, cast)
	p.Votes = votes
	r.approvals.useToken(ruling.Token)
	decision, decided := o.action.Decide(question, votes, p.Need, ruling.Params)
	reply.Node, reply.By, reply.Votes, reply.Need, reply.Decided = o.Node, by, len(votes), p.Need, decided
	if decided {
		r.decided(ctx, v.req.ID, by, decision, into)
	}
	r.audit(ctx, trail.Voted(question, o.action, cast, decided))
}

// decided gives a decision to the task that asked.
func (r *run) decided(ctx workflow.Context, request, by string, d approval.Decision, into *[]protocol.ResumeRequest) {
	req := protocol.ResumeRequest{ID: request, Question: d.Question, Value: decisionValue(d), By: by}
	r.accept(ctx, request, req.All())
	*into = append(*into, req)
	r.settled(d.Question)
}

func decisionValue(d approval.Decision) pregel.Value {
	text, err := json.Marshal(d)
	if err != nil {
		panic("superstep: a decision always encodes: its parameters were JSON: " + err.Error())
	}
	return text
}

// refusalOf is why a request was refused before anybody verified it.
func refusalOf(question string, err error) protocol.AnswerRefusal {
	refused := protocol.AnswerRefusal{Question: question}
	var typed *temporal.ApplicationError
	if errors.As(err, &typed) {
		refused.Reason = typed.Message()
		if typed.Type() == protocol.ErrTypeBadAnswer {
			refused.Code = approval.CodeMalformed
		}
	}
	return refused
}

// notCounted is what who answered is told.
func notCounted(a protocol.AnswerRefusal) error {
	text := "the answer to question " + a.Question + " does not count"
	if a.By != "" {
		text += ", given by " + a.By
	}
	return temporal.NewNonRetryableApplicationError(text+": "+strings.TrimSuffix(a.Reason, "."), protocol.ErrTypeNotAllowed, nil, a)
}
