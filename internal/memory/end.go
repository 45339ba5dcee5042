package memory

import (
	"context"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
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
	runtime.ConcludeView(&t.stands, ended, err)
	t.open = t.trace.Complete(&t.stands, ended.Questions)
	t.effects.ended(t.stands.Status)
	t.cause, t.held = err, false
	t.stands.Held = t.options.Hold && t.stands.Status.Failed()
	if !t.stands.Rests() {
		t.stands.Closed = time.Now()
		t.life.Unpaused()
	}
	if t.stands.Status == thread.StatusCancelled {
		t.cancelled()
	}
	t.life.Look()
	if err := t.advance(); err != nil {
		t.stands.Problem = err.Error()
		t.shown()
	}
}

// settle waits until no run is under way and returns with t.mu held. With an error t.mu is not held.
func (t *memoryThread) settle(ctx context.Context) error {
	for {
		t.mu.Lock()
		done := t.done
		if done == nil { // its first run is about to begin
			t.mu.Unlock()
			return t.refuse(thread.ErrNotFound, "it has never run")
		}
		if t.view.Status != thread.StatusRunning {
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
