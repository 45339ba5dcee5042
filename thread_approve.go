package superstep

import (
	"context"

	"superstep.dev/approval"
)

// ReplyOption shapes an answer.
type ReplyOption interface{ applyReply(*replyOptions) }

type replyOptions struct {
	asker
	id     string
	tokens map[string]string
}

type replyOption func(*replyOptions)

func (o replyOption) applyReply(r *replyOptions) { o(r) }

// WithTokens proves it for several questions that are answered at once, by their ids as they were given.
func WithTokens(tokens map[string]string) ReplyOption {
	return replyOption(func(r *replyOptions) { r.tokens = tokens })
}

// RequestID makes an answer or an event idempotent: see [WithRequestID].
type RequestID interface {
	ReplyOption
	EventOption
}

type requestID string

func (id requestID) applyReply(r *replyOptions) { r.id = string(id) }
func (id requestID) applyEvent(r *EventRequest) { r.ID = string(id) }

// WithRequestID makes an answer or an event idempotent: the thread takes the same id once, of at most 200 bytes, and says so
// of the next, also when its run is over. Example: the id that a webhook is delivered under.
func WithRequestID(id string) RequestID { return requestID(id) }

// AnsweredBy names who answers. In a [Memory] without a gate the answer counts as theirs; a gate refuses it when its token
// is somebody else's (approval.CodeWrongPerson).
func AnsweredBy(name string) ReplyOption { return replyOption(func(r *replyOptions) { r.by = name }) }

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

func replyOptionsOf(opts []ReplyOption) (o replyOptions) {
	for _, opt := range opts {
		opt.applyReply(&o)
	}
	return o
}

// Audit returns the thread's record, oldest first, and the chain that it ends in: who was asked for approvals, what was said
// and refused, and what was done; who paused, cancelled, retried, forked, updated, drained, answered or sent an event; and
// what became of writes that were unclear or taken back. [approval.VerifyEntries] proves that nothing was changed. A [Memory] keeps the
// newest 10,000 entries, a [Client] those of the runs that the server still has. Errors: ErrNotFound; of a Client those of
// its Audit.
//
// AuditExport is the form of it that is proven elsewhere.
func (t *Thread[Out]) Audit(ctx context.Context) ([]approval.Entry, approval.Chain, error) {
	return t.runtime.auditOf(ctx, t.graph, t.id)
}

// AuditExport is [Thread.Audit] with the end of the chain as a worker signs it ([WorkerConfig].AuditSigner): what is kept
// elsewhere ([approval.WriteExport]) is proven there ([approval.Export.Verify]), with public keys alone. Signed is "" when
// no worker that answers has a key for that. Errors: those of Audit.
func (t *Thread[Out]) AuditExport(ctx context.Context) (approval.Export, error) {
	return t.runtime.exportOf(ctx, t.graph, t.id)
}
