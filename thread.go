package superstep

import (
	"context"
	"fmt"

	"superstep.dev/graphadapter"
)

// Thread is a named run of a graph that remembers its state between runs. It is a handle: making one does nothing, and
// two handles with the same id on the same runtime are the same thread. It is safe for concurrent use.
//
// Calls return an [*Error] when they are refused, with a sentinel such as [ErrBadInput] or [ErrRunning], and a
// [*RunError] when the run failed or was cancelled.
type Thread[Out any] struct {
	graph   *graphadapter.Graph
	runtime Runtime
	id      string
}

// ID returns the thread's id.
func (t *Thread[Out]) ID() string { return t.id }

// Start begins a run and returns when the runtime has accepted it. Input is as for [Graph.Invoke]; it abandons
// questions that are still open. Nil input goes on where the thread stands: behind a breakpoint, or after a failure.
// It is refused with [ErrRunning] while a run is under way.
func (t *Thread[Out]) Start(ctx context.Context, input any, opts ...RunOption) error {
	if err := badThreadID(t.graph.Spec.Name, t.id); err != nil {
		return err
	}
	r, err := newStart(t.graph, t.id, input, runOptionsOf(opts))
	if err != nil {
		return err
	}
	_, err = t.runtime.startRun(ctx, t.graph, r)
	return err
}

// Wait returns when the thread's run waits for answers, stopped at a breakpoint, or ended. The end of ctx ends only
// the waiting. Without any run it returns [ErrNotFound]. An output that does not fit Out is a *[StateError].
func (t *Thread[Out]) Wait(ctx context.Context) (Result[Out], error) {
	return resultOf[Out](t.runtime.waitRun(ctx, t.graph, t.id))
}

// Invoke is Start and Wait.
func (t *Thread[Out]) Invoke(ctx context.Context, input any, opts ...RunOption) (Result[Out], error) {
	if err := t.Start(ctx, input, opts...); err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Resume answers the one open question and waits as Wait does. With several open it is refused with [ErrBadInput],
// with none with [ErrAnswerRefused]; an answer that does not have the type that the node asked for is [ErrBadInput]
// and changes nothing.
func (t *Thread[Out]) Resume(ctx context.Context, answer any, opts ...ReplyOption) (Result[Out], error) {
	if _, err := t.Answer(ctx, "", answer, opts...); err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// ResumeByID answers any of the open questions by their ids, all of those given or none, and waits as Wait does. The
// refusals are those of Resume.
func (t *Thread[Out]) ResumeByID(ctx context.Context, byID map[string]any, opts ...ReplyOption) (Result[Out], error) {
	if _, err := t.AnswerByID(ctx, byID, opts...); err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Retry goes on after a failure from the last checkpoint, and waits as Wait does: tasks that finished do not run
// again. It is refused with [ErrNotFailed] when the thread's run did not fail and was not cancelled.
func (t *Thread[Out]) Retry(ctx context.Context, opts ...ControlOption) (Result[Out], error) {
	a := askerOf(opts)
	if _, err := t.runtime.retryRun(ctx, t.graph, RetryRequest{Thread: t.id, By: a.by, Reason: a.reason, Token: a.token}); err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Cancel ends the thread's run and returns when it has ended; a run that already ended stays as it is. The reason is
// kept with the run. The thread may be continued with Retry or new input. A [CancelMode] says what becomes of what it
// did; with [CancelCompensate] the run may wait for people instead of ending, and a run that failed is cleaned up behind.
func (t *Thread[Out]) Cancel(ctx context.Context, reason string, opts ...CancelOption) error {
	r := CancelRequest{Thread: t.id, Reason: reason}
	for _, o := range opts {
		o.applyCancel(&r)
	}
	_, err := t.runtime.cancelRun(ctx, t.graph, r)
	return err
}

// String returns the graph's and the thread's name.
func (t *Thread[Out]) String() string { return fmt.Sprintf("%s/%s", t.graph.Spec.Name, t.id) }
