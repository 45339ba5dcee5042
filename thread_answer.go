package superstep

import (
	"context"
	"encoding/json"

	"superstep.dev/approval"
)

// Answer answers a question, and returns when the answer is stored and taken, without waiting for what the run does with
// it: [Thread.Stream] from the last part's Offset, or [Thread.Wait], tell. Resume, Approve, Reject and Edit are Answer and
// Wait. The question is its id or an unambiguous beginning of it, "" while exactly one is open; the answer to one that asks
// for an approval is an [approval.Reply].
//
//	reply, err := thread.Answer(ctx, "", true, superstep.WithRequestID(deliveryID))
//	for part, err := range thread.Stream(ctx, superstep.StreamFrom(last.Offset)) { … }
//
// Errors: those of [Thread.Resume], and of [Thread.Approve] for approvals. A request whose [WithRequestID] was taken before
// is none: the reply is Repeated.
func (t *Thread[Out]) Answer(ctx context.Context, question string, answer any, opts ...ReplyOption) (ResumeReply, error) {
	if reply, ok := answer.(approval.Reply); ok && reply.Reason == "" {
		reply.Reason = replyOptionsOf(opts).reason
		answer = reply
	}
	raw, err := t.encodeAnswer(question, answer)
	if err != nil {
		return ResumeReply{}, err
	}
	return t.runtime.resumeRun(ctx, t.graph, t.id, answers{only: raw, question: question}.as(opts))
}

// AnswerByID is [Thread.Answer] for several of the open questions, by their ids: all of those given, or none. Tokens for
// approvals among them come with [WithTokens].
func (t *Thread[Out]) AnswerByID(ctx context.Context, byID map[string]any, opts ...ReplyOption) (ResumeReply, error) {
	a := answers{byID: make(map[string]json.RawMessage, len(byID))}
	for id, answer := range byID {
		raw, err := t.encodeAnswer(id, answer)
		if err != nil {
			return ResumeReply{}, err
		}
		a.byID[id] = raw
	}
	return t.runtime.resumeRun(ctx, t.graph, t.id, a.as(opts))
}

func (t *Thread[Out]) encodeAnswer(id string, answer any) (json.RawMessage, error) {
	raw, err := encodeJSON(answer)
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Graph: t.graph.Spec.Name, Thread: t.id, Question: id,
			Message: "the answer does not encode as JSON", Cause: err}
	}
	return raw, nil
}
