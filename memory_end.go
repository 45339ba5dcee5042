package superstep

import (
	"context"
	"errors"
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
	concludeView(&t.view, ended, err)
	t.trace.complete(&t.view)
	if t.view.Status == StatusCancelled {
		t.noteCancel()
	}
	t.effects.ended(t.view.Status)
	t.open, t.events.waits = splitQuestions(ended.Questions)
	t.cause = err
	t.view.Held = t.options.Hold && t.view.Status.Failed()
	t.view.Closed = time.Now()
	if t.view.rests() {
		t.view.Closed = time.Time{}
	}
	t.pause.rests(t)
	t.attend()
}

// splitQuestions tells questions for people from waits for events.
func splitQuestions(all []pregel.Question) (open, waits []pregel.Question) {
	for _, q := range all {
		if q.Event != "" {
			waits = append(waits, q)
			continue
		}
		open = append(open, q)
	}
	return open, waits
}

// cancelledError is the cause of a cancelled run's context.
type cancelledError struct{ reason string }

func (e *cancelledError) Error() string { return e.reason }

// concludeView says how a run ended.
func concludeView(v *ThreadView, ended graphadapter.RunResult, err error) {
	v.Output = ended.Output
	open, waits := splitQuestions(ended.Questions)
	for _, q := range open {
		v.Questions = append(v.Questions, questionView(q, "", 0))
	}
	for _, q := range waits {
		v.Waits = append(v.Waits, WaitView{ID: q.ID, Event: q.Event, Schema: q.Schema})
	}
	var cancelled *cancelledError
	switch {
	case errors.As(err, &cancelled), errors.Is(err, context.Canceled):
		v.Status, v.Error = StatusCancelled, err.Error()
	case err != nil:
		v.Failure = pregel.AsNodeError(v.Graph, "", err)
		v.Status, v.Error = failureStatus(v.Failure), err.Error()
	case len(open) > 0:
		v.Status = StatusWaiting
	case len(waits) > 0:
		v.Status = StatusWaitingEvent
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
