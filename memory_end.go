package superstep

import (
	"context"
	"errors"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// stopped records how the run of that number stopped. One that was updated while it was held has been succeeded by that.
func (t *memoryThread) stopped(number int, ended graphadapter.RunResult, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs != number {
		return
	}
	defer close(t.done)
	t.tape.ends()
	t.listen()
	concludeView(&t.stands, ended, err)
	t.open = t.trace.complete(&t.stands, ended.Questions)
	t.effects.ended(t.stands.Status)
	t.cause, t.held = err, false
	t.stands.Held = t.options.Hold && t.stands.Status.Failed()
	if !t.stands.rests() {
		t.stands.Closed = time.Now()
		t.life.Unpaused()
	}
	if t.stands.Status == StatusCancelled {
		t.cancelled()
	}
	t.life.Look()
	if err := t.advance(); err != nil {
		t.stands.Problem = err.Error()
		t.shown()
	}
}

// cancelledError is the cause of a cancelled run's context.
type cancelledError struct{ reason string }

func (e *cancelledError) Error() string { return e.reason }

// concludeView says how a run ended.
func concludeView(v *ThreadView, ended graphadapter.RunResult, err error) {
	v.Output = ended.Output
	var cancelled *cancelledError
	switch {
	case errors.As(err, &cancelled), errors.Is(err, context.Canceled):
		v.Status, v.Error = StatusCancelled, err.Error()
	case err != nil:
		v.Failure = pregel.AsNodeError(v.Graph, "", err)
		v.Status, v.Error = failureStatus(v.Failure), err.Error()
	case len(ended.Questions) > 0:
		v.Status = StatusWaiting
		if !slices.ContainsFunc(ended.Questions, func(q pregel.Question) bool { return q.Event == "" }) {
			v.Status = StatusWaitingEvent
		}
	case ended.Breakpoint, ended.Drained != "":
		v.Status, v.Drained = StatusStopped, ended.Drained
	default:
		v.Status = StatusFinished
	}
}

// settle waits until no run is under way and returns with t.mu held. With an error t.mu is not held.
func (t *memoryThread) settle(ctx context.Context) error {
	for {
		t.mu.Lock()
		done := t.done
		if done == nil { // its first run is about to begin
			t.mu.Unlock()
			return t.refuse(ErrNotFound, "it has never run")
		}
		if t.view.Status != StatusRunning {
			return nil
		}
		t.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
