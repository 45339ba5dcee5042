package superstep

import (
	"context"
	"encoding/json"

	"superstep.dev/approval"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
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
func (t *Thread[Out]) Answer(ctx context.Context, question string, answer any, opts ...ReplyOption) (thread.ResumeReply, error) {
	if reply, ok := answer.(approval.Reply); ok && reply.Reason == "" {
		reply.Reason = replyOptionsOf(opts).Reason
		answer = reply
	}
	raw, err := t.encodeAnswer(question, answer)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	return t.runtime.ResumeRun(ctx, t.graph, replied(thread.ResumeRequest{Thread: t.id, Question: question, Value: raw}, opts))
}

// AnswerByID is [Thread.Answer] for several of the open questions, by their ids: all of those given, or none. Tokens for
// approvals among them come with [WithTokens].
func (t *Thread[Out]) AnswerByID(ctx context.Context, byID map[string]any, opts ...ReplyOption) (thread.ResumeReply, error) {
	r := thread.ResumeRequest{Thread: t.id, Answers: make(map[string]json.RawMessage, len(byID))}
	for id, answer := range byID {
		raw, err := t.encodeAnswer(id, answer)
		if err != nil {
			return thread.ResumeReply{}, err
		}
		r.Answers[id] = raw
	}
	return t.runtime.ResumeRun(ctx, t.graph, replied(r, opts))
}

func (t *Thread[Out]) encodeAnswer(id string, answer any) (json.RawMessage, error) {
	raw, err := jsonfit.Encode(answer)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: t.graph.Spec.Name, Thread: t.id, Question: id,
			Message: "the answer does not encode as JSON", Cause: err}
	}
	return raw, nil
}

// replied is a request as its options shape it.
func replied(r thread.ResumeRequest, opts []ReplyOption) thread.ResumeRequest {
	o := replyOptionsOf(opts)
	r.Token, r.By, r.ID, r.Tokens = o.Token, o.By, o.id, o.tokens
	return r
}

// Approve approves the action of a question of [Approve], [WithApproval] or an [Effect], and waits as Wait does. The
// question is its id or an unambiguous beginning of it, "" while exactly one is open. When the action needs more people
// the vote is kept, and the run goes on waiting.
//
// Errors: ErrAnswerRefused, with the gate's Code, when the answer does not count or somebody has decided before; those of
// Resume.
func (t *Thread[Out]) Approve(ctx context.Context, question string, opts ...ReplyOption) (Result[Out], error) {
	return t.reply(ctx, question, approval.Reply{Verdict: approval.VerdictApprove}, opts)
}

// Reject rejects the action; see [Thread.Approve]. One rejection decides.
func (t *Thread[Out]) Reject(ctx context.Context, question string, opts ...ReplyOption) (Result[Out], error) {
	return t.reply(ctx, question, approval.Reply{Verdict: approval.VerdictReject}, opts)
}

// Edit proposes other parameters, which encode as JSON of at most 64 KiB: they are asked about anew; see [Thread.Approve].
func (t *Thread[Out]) Edit(ctx context.Context, question string, params any, opts ...ReplyOption) (Result[Out], error) {
	raw, err := t.encodeAnswer(question, params)
	if err != nil {
		return Result[Out]{}, err
	}
	return t.reply(ctx, question, approval.Reply{Verdict: approval.VerdictEdit, Params: raw}, opts)
}

func (t *Thread[Out]) reply(ctx context.Context, question string, r approval.Reply, opts []ReplyOption) (Result[Out], error) {
	if _, err := t.Answer(ctx, question, r, opts...); err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Audit returns the thread's record, oldest first, and the chain that it ends in: who was asked for approvals, what was said
// and refused, and what was done; who paused, cancelled, retried, forked, updated, drained, answered or sent an event; and
// what became of writes that were unclear or taken back. [approval.VerifyEntries] proves that nothing was changed. A [Memory] keeps the
// newest 10,000 entries, a [Client] those of the runs that the server still has. Errors: ErrNotFound; of a Client those of
// its Audit.
//
// AuditExport is the form of it that is proven elsewhere.
func (t *Thread[Out]) Audit(ctx context.Context) ([]approval.Entry, approval.Chain, error) {
	return t.runtime.AuditOf(ctx, t.graph, t.id)
}

// AuditExport is [Thread.Audit] with the end of the chain as a worker signs it ([WorkerConfig].AuditSigner): what is kept
// elsewhere ([approval.WriteExport]) is proven there ([approval.Export.Verify]), with public keys alone. Signed is "" when
// no worker that answers has a key for that. Errors: those of Audit.
func (t *Thread[Out]) AuditExport(ctx context.Context) (approval.Export, error) {
	return t.runtime.ExportOf(ctx, t.graph, t.id)
}
