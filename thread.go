package superstep

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// Thread is a named run of a graph that remembers its state between runs. It is a handle: making one does nothing, and
// two handles with the same id on the same runtime are the same thread. It is safe for concurrent use.
//
// Calls return an [*thread.Error] when they are refused, with a sentinel such as [thread.ErrBadInput] or [thread.ErrRunning], and a
// [*RunError] when the run failed or was cancelled.
type Thread[Out any] struct {
	graph   *graphadapter.Graph
	runtime runtime.Runtime
	id      string
}

// ID returns the thread's id.
func (t *Thread[Out]) ID() string { return t.id }

// Start begins a run and returns when the runtime has accepted it. Input is as for [Graph.Invoke]; it abandons
// questions that are still open. Nil input goes on where the thread stands: behind a breakpoint, or after a failure.
// It is refused with [thread.ErrRunning] while a run is under way.
func (t *Thread[Out]) Start(ctx context.Context, input any, opts ...RunOption) error {
	r, err := t.startOf(input, opts)
	if err != nil {
		return err
	}
	_, err = t.runtime.StartRun(ctx, t.graph, r)
	return err
}

// Wait returns when the thread's run waits for answers, stopped at a breakpoint, or ended. The end of ctx ends only
// the waiting. Without any run it returns [thread.ErrNotFound]. An output that does not fit Out is a *[StateError].
func (t *Thread[Out]) Wait(ctx context.Context) (Result[Out], error) {
	return t.result(runtime.Resting(t.runtime.WaitRun(ctx, t.graph, t.id)))
}

// Invoke is Start and Wait, in one call of a [Client] for new input: the thread's open run takes the input as a turn. A thread that has
// finished goes on in a run that stays open for further turns, see [WithKeepOpen].
func (t *Thread[Out]) Invoke(ctx context.Context, input any, opts ...RunOption) (Result[Out], error) {
	r, err := t.startOf(input, opts)
	if err != nil {
		return Result[Out]{}, err
	}
	return t.result(t.runtime.InvokeRun(ctx, t.graph, r))
}

// startOf is the request for a run.
func (t *Thread[Out]) startOf(input any, opts []RunOption) (runtime.Start, error) {
	if err := runtime.BadThreadID(t.graph.Spec.Name, t.id); err != nil {
		return runtime.Start{}, err
	}
	return newStart(t.graph, t.id, input, runOptionsOf(opts))
}

// Show returns what is known of the thread without its values: where it stands, what it asks, and why it makes no progress if it
// does not. It also does so while a run is under way. Errors: [thread.ErrNotFound]; of a [Client] those of its Show.
func (t *Thread[Out]) Show(ctx context.Context) (thread.View, error) {
	return t.runtime.ShowRun(ctx, t.graph, t.id)
}

// Resume answers the one open question and waits as Wait does. With several open it is refused with [thread.ErrBadInput],
// with none with [thread.ErrAnswerRefused]; an answer that does not have the type that the node asked for is [thread.ErrBadInput]
// and changes nothing.
func (t *Thread[Out]) Resume(ctx context.Context, answer any, opts ...RequestOption) (Result[Out], error) {
	r, err := t.answerOf("", answer, opts)
	return t.answered(ctx, r, err)
}

// answered sends an answer, unless the request for it could not be made, and waits as Wait does.
func (t *Thread[Out]) answered(ctx context.Context, r thread.ResumeRequest, err error) (Result[Out], error) {
	if err != nil {
		return Result[Out]{}, err
	}
	return t.result(t.runtime.AnswerRun(ctx, t.graph, r))
}

// ResumeByID answers any of the open questions by their ids, all of those given or none, and waits as Wait does. The
// refusals are those of Resume.
func (t *Thread[Out]) ResumeByID(ctx context.Context, byID map[string]any, opts ...RequestOption) (Result[Out], error) {
	r, err := t.answersOf(byID, opts)
	return t.answered(ctx, r, err)
}

// Retry goes on after a failure from the last checkpoint, and waits as Wait does: tasks that finished do not run
// again. It is refused with [thread.ErrNotFailed] when the thread's run did not fail and was not cancelled.
func (t *Thread[Out]) Retry(ctx context.Context, opts ...RequestOption) (Result[Out], error) {
	a, err := requested(t, "Retry", opts)
	if err != nil {
		return Result[Out]{}, err
	}
	if _, err := t.runtime.RetryRun(ctx, t.graph, thread.RetryRequest{Thread: t.id, By: a.By, Reason: a.Reason, Token: a.Token}); err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Cancel ends the thread's run and returns when it has ended; a run that already ended stays as it is. The reason is
// kept with the run. The thread may be continued with Retry or new input. A [thread.CancelMode] says what becomes of what it
// did; with [thread.CancelCompensate] the run may wait for people instead of ending, and a run that failed is cleaned up behind.
func (t *Thread[Out]) Cancel(ctx context.Context, reason string, opts ...RequestOption) error {
	o, err := requested(t, "Cancel", opts, "WithMode")
	if err != nil {
		return err
	}
	_, err = t.runtime.CancelRun(ctx, t.graph, thread.CancelRequest{Thread: t.id, Reason: cmp.Or(o.Reason, reason), Mode: o.mode, By: o.By, Token: o.Token})
	return err
}

// String returns the graph's and the thread's name.
func (t *Thread[Out]) String() string { return fmt.Sprintf("%s/%s", t.graph.Spec.Name, t.id) }

// SendEvent sends an event to the thread, and returns when it is taken: every task that waits for it with [WaitEvent] goes
// on, or, when none does yet, the first that will. Wait tells how the run goes on. Value encodes as JSON of at most
// 256 KiB.
//
// With [WithRequestID] the same event may be sent again by who never learnt what became of it.
//
// Errors: [thread.ErrBadInput] when it does not fit what waits for it; [thread.ErrAnswerRefused] when the run is over; [thread.ErrRunning] when
// the thread keeps too many events.
func (t *Thread[Out]) SendEvent(ctx context.Context, name string, value any, opts ...RequestOption) (thread.EventReply, error) {
	raw, err := jsonfit.Encode(value)
	if err != nil {
		return thread.EventReply{}, &thread.Error{Kind: thread.ErrBadInput, Graph: t.graph.Spec.Name, Thread: t.id,
			Message: "the event's value does not encode as JSON", Cause: err}
	}
	o, err := requested(t, "SendEvent", opts, "WithRequestID")
	if err != nil {
		return thread.EventReply{}, err
	}
	return t.runtime.EventRun(ctx, t.graph, thread.EventRequest{Thread: t.id, Name: name, Value: raw, By: o.By, Token: o.Token, ID: o.id})
}

// Pause keeps the thread's run from starting anything, and returns when that is accepted: the tasks under way end and are
// kept, and Wait tells when the run stands still, with [thread.StatusPaused]. It takes answers and updates meanwhile, and goes on
// with Unpause. A run that is over stays as it is. The reason has at most 1,000 bytes.
func (t *Thread[Out]) Pause(ctx context.Context, reason string, opts ...RequestOption) error {
	a, err := requested(t, "Pause", opts)
	if err != nil {
		return err
	}
	_, err = t.runtime.PauseRun(ctx, t.graph, thread.PauseRequest{Thread: t.id, Reason: cmp.Or(reason, a.Reason), By: a.By, Token: a.Token}, false)
	return err
}

// Unpause lets a paused run go on, and returns when that is accepted. A run that nobody paused stays as it is.
func (t *Thread[Out]) Unpause(ctx context.Context, opts ...RequestOption) error {
	a, err := requested(t, "Unpause", opts)
	if err != nil {
		return err
	}
	_, err = t.runtime.PauseRun(ctx, t.graph, thread.PauseRequest{Thread: t.id, Reason: a.Reason, By: a.By, Token: a.Token}, true)
	return err
}

// Stream returns what the thread's runs stream, in the given modes or StreamUpdates: from the beginning of its newest
// run, or behind an offset. It follows a run under way, and ends when the thread waits for answers, stands still or has
// ended; the last part's Offset goes on from there later. See [Client.Stream] for the order, the payloads and the
// guarantees, which are the same on every runtime.
func (t *Thread[Out]) Stream(ctx context.Context, opts ...StreamOption) iter.Seq2[thread.Part, error] {
	r := thread.StreamRequest{Thread: t.id}
	for _, o := range opts {
		o.ApplyStream(&r)
	}
	return t.runtime.StreamRun(ctx, t.graph, r)
}

// Effects returns what the thread did outside: the effects of all its runs and branches, with those that failed or were
// cancelled and those of tasks under way, one row for each key. Errors: ErrNotFound.
func (t *Thread[Out]) Effects(ctx context.Context) (thread.EffectsView, error) {
	return t.runtime.EffectsOf(ctx, t.graph, t.id)
}

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
func (t *Thread[Out]) Answer(ctx context.Context, question string, answer any, opts ...RequestOption) (thread.ResumeReply, error) {
	r, err := t.answerOf(question, answer, opts)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	return t.runtime.ResumeRun(ctx, t.graph, r)
}

// answerOf is the request that answers one question.
func (t *Thread[Out]) answerOf(question string, answer any, opts []RequestOption) (thread.ResumeRequest, error) {
	o, err := requested(t, "Answer", opts, answerOptions...)
	if err != nil {
		return thread.ResumeRequest{}, err
	}
	if reply, ok := answer.(approval.Reply); ok && reply.Reason == "" {
		reply.Reason = o.Reason
		answer = reply
	}
	raw, err := t.encodeAnswer(question, answer)
	return replied(thread.ResumeRequest{Thread: t.id, Question: question, Value: raw}, o), err
}

// AnswerByID is [Thread.Answer] for several of the open questions, by their ids: all of those given, or none. Tokens for
// approvals among them come with [WithTokens]; where the rules want proof of who answers anything else, one [WithToken] is for
// all of them, with [approval.OpResume] on "".
func (t *Thread[Out]) AnswerByID(ctx context.Context, byID map[string]any, opts ...RequestOption) (thread.ResumeReply, error) {
	r, err := t.answersOf(byID, opts)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	return t.runtime.ResumeRun(ctx, t.graph, r)
}

// answersOf is the request that answers several questions.
func (t *Thread[Out]) answersOf(byID map[string]any, opts []RequestOption) (thread.ResumeRequest, error) {
	o, err := requested(t, "AnswerByID", opts, answerOptions...)
	if err != nil {
		return thread.ResumeRequest{}, err
	}
	r := thread.ResumeRequest{Thread: t.id, Answers: make(map[string]json.RawMessage, len(byID))}
	for id, answer := range byID {
		raw, err := t.encodeAnswer(id, answer)
		if err != nil {
			return thread.ResumeRequest{}, err
		}
		r.Answers[id] = raw
	}
	return replied(r, o), nil
}

func (t *Thread[Out]) encodeAnswer(id string, answer any) (json.RawMessage, error) {
	raw, err := jsonfit.Encode(answer)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: t.graph.Spec.Name, Thread: t.id, Question: id,
			Message: "the answer does not encode as JSON", Cause: err}
	}
	return raw, nil
}

// answerOptions are the options of answers besides who answers.
var answerOptions = []string{"WithRequestID", "WithTokens"}

// replied is a request as its options shape it.
func replied(r thread.ResumeRequest, o requestOptions) thread.ResumeRequest {
	r.Token, r.By, r.ID, r.Tokens = o.Token, o.By, o.id, o.tokens
	return r
}

// Approve approves the action of a question of [Approve], [WithApproval] or an [Effect], and waits as Wait does. The
// question is its id or an unambiguous beginning of it, "" while exactly one is open. When the action needs more people
// the vote is kept, and the run goes on waiting.
//
// Errors: ErrAnswerRefused, with the gate's Code, when the answer does not count or somebody has decided before; those of
// Resume.
func (t *Thread[Out]) Approve(ctx context.Context, question string, opts ...RequestOption) (Result[Out], error) {
	return t.reply(ctx, question, approval.Reply{Verdict: approval.VerdictApprove}, opts)
}

// Reject rejects the action; see [Thread.Approve]. One rejection decides.
func (t *Thread[Out]) Reject(ctx context.Context, question string, opts ...RequestOption) (Result[Out], error) {
	return t.reply(ctx, question, approval.Reply{Verdict: approval.VerdictReject}, opts)
}

// Edit proposes other parameters, which encode as JSON of at most 64 KiB: they are asked about anew; see [Thread.Approve].
func (t *Thread[Out]) Edit(ctx context.Context, question string, params any, opts ...RequestOption) (Result[Out], error) {
	raw, err := t.encodeAnswer(question, params)
	if err != nil {
		return Result[Out]{}, err
	}
	return t.reply(ctx, question, approval.Reply{Verdict: approval.VerdictEdit, Params: raw}, opts)
}

func (t *Thread[Out]) reply(ctx context.Context, question string, r approval.Reply, opts []RequestOption) (Result[Out], error) {
	req, err := t.answerOf(question, r, opts)
	return t.answered(ctx, req, err)
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

// Result is where a run stands when it no longer runs.
type Result[Out any] struct {
	// Status is StatusFinished, that of a run that rests ([thread.Status.Rests]), or that of a run that ended otherwise.
	Status thread.Status
	// Output holds the graph's output fields as far as they have a value.
	Output Out
	// Questions are open: answer them with Resume or ResumeByID.
	Questions []thread.Question
	// Drained is why a run with StatusStopped was asked to stop; "" when it stands at a breakpoint.
	Drained string
	// Paused says who paused the run; nil when nobody did.
	Paused *thread.PauseView
}

// result decodes a view, as resultOf. What the client has decoded of the thread's output before is not decoded again.
func (t *Thread[Out]) result(rest runtime.Rest, cause error) (Result[Out], error) {
	return resultOf[Out](rest, cause, t.runtime.Decoded(t.id))
}

// resultOf decodes how a run rests; cause is what the runtime knows of a failure, or why it has no view.
func resultOf[Out any](view runtime.Rest, cause error, decoded *sync.Map) (Result[Out], error) {
	r := Result[Out]{Status: view.Status, Questions: view.Questions, Drained: view.Drained, Paused: view.Paused}
	switch view.Status {
	case thread.StatusFailed, thread.StatusTimedOut, thread.StatusOutOfBudget, thread.StatusCancelled, thread.StatusTerminated:
		return r, runError(view.View, cause)
	}
	if cause != nil {
		return r, cause
	}
	var err error
	r.Output, err = decodeOutput[Out](view.Graph, view.Held(), decoded)
	return r, err
}

// requested are the options of a request of a thread that takes these besides who asks.
func requested[Out any, O RequestOption](t *Thread[Out], what string, opts []O, takes ...string) (r requestOptions, err error) {
	for _, o := range opts {
		o.applyRequest(&r)
	}
	return r, misplaced(t.graph.Spec.Name, t.id, what, r.special, takes)
}
