package graphadapter

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// maxHeldWait is how long the wait for a task's next attempt may keep a segment from leaving: a longer one is the
// server's, and holds no worker.
const maxHeldWait = 5 * time.Second

// attempts counts the failed attempts of one task, and waits between them. The zero value is that of a task that begins.
// It is safe for concurrent use.
type attempts struct {
	keep  func(context.Context) error // makes a failed attempt durable; nil does not
	now   func() time.Time            // the clock of RetryAt; nil is this process's
	leave <-chan struct{}             // ends a wait: the task is given back; nil never does

	mu       sync.Mutex
	kept     Between
	returned bool
}

// between is what the attempts leave to the next execution.
func (a *attempts) between() Between {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept
}

// number is that of the attempt that is next, from 1.
func (a *attempts) number() int { return a.between().Failures + 1 }

// failed counts a failed attempt; emitted is what it and those before it streamed. One that cannot be made durable is
// lost with this process, no more.
func (a *attempts) failed(ctx context.Context, wait time.Duration, emitted []pregel.Emission) {
	a.mu.Lock()
	a.kept.Failures++
	a.kept.Emitted, a.kept.RetryAt = emitted, time.Time{}
	if wait > 0 {
		a.kept.RetryAt = a.clock().Add(wait)
	}
	a.mu.Unlock()
	if a.keep != nil {
		_ = a.keep(ctx)
	}
}

func (a *attempts) clock() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// pause waits until the next attempt may begin. It reports false when ctx ended first, or the task is given back.
func (a *attempts) pause(ctx context.Context) bool {
	at := a.between().RetryAt
	if at.IsZero() {
		return ctx.Err() == nil
	}
	wait := at.Sub(a.clock())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	if a.leave != nil && wait > maxHeldWait {
		return a.giveBack()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.leave:
		return a.giveBack()
	case <-ctx.Done():
		return false
	}
}

func (a *attempts) giveBack() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.returned = true
	return false
}

// isReturned reports whether the task is given back before its next attempt.
func (a *attempts) isReturned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.returned
}
