package taskrun

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// maxHeldWait is how long the wait for a task's next attempt may keep a segment from leaving: a longer one is the
// server's, and holds no worker.
const maxHeldWait = 5 * time.Second

// Attempts counts the failed attempts of one task, and waits between them. The zero value is that of a task that begins.
// It is safe for concurrent use.
type Attempts struct {
	Keep  func(context.Context) error // makes a failed attempt durable; nil does not
	Now   func() time.Time            // the clock of RetryAt; nil is this process's
	Leave <-chan struct{}             // ends a wait: the task is given back; nil never does

	mu       sync.Mutex
	Kept     graphadapter.CarryOver
	returned bool
}

// CarryOver is what the attempts leave to the next execution.
func (a *Attempts) CarryOver() graphadapter.CarryOver {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Kept
}

// number is that of the attempt that is next, from 1.
func (a *Attempts) number() int { return a.CarryOver().Failures + 1 }

// failed counts a failed attempt; emitted is what it and those before it streamed. One that cannot be made durable is
// lost with this process, no more.
func (a *Attempts) failed(ctx context.Context, wait time.Duration, emitted []pregel.Emission) {
	a.mu.Lock()
	a.Kept.Failures++
	a.Kept.Emitted, a.Kept.RetryAt = emitted, time.Time{}
	if wait > 0 {
		a.Kept.RetryAt = a.clock().Add(wait)
	}
	a.mu.Unlock()
	if a.Keep != nil {
		_ = a.Keep(ctx)
	}
}

func (a *Attempts) clock() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// pause waits until the next attempt may begin. It reports false when ctx ended first, or the task is given back.
func (a *Attempts) pause(ctx context.Context) bool {
	at := a.CarryOver().RetryAt
	if at.IsZero() {
		return ctx.Err() == nil
	}
	wait := at.Sub(a.clock())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	if a.Leave != nil && wait > maxHeldWait {
		return a.giveBack()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.Leave:
		return a.giveBack()
	case <-ctx.Done():
		return false
	}
}

func (a *Attempts) giveBack() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.returned = true
	return false
}

// IsReturned reports whether the task is given back before its next attempt.
func (a *Attempts) IsReturned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.returned
}
