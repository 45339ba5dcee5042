package taskrun

import (
	"context"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// CarryOver is what the task's attempts leave to its next execution.
func (o *Outbox) CarryOver() graphadapter.CarryOver {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.between
}

// Attempt is the number of the attempt under way, or of the next one, as the node's retry policy counts: from 1. Lost
// workers do not count.
func (o *Outbox) Attempt() int { return o.CarryOver().Failures + 1 }

// Fail counts a failed attempt; emitted is what this attempt and those before it streamed. Fail reports whether this
// process makes the next attempt.
func (o *Outbox) Fail(ctx context.Context, wait time.Duration, failure *pregel.NodeError, emitted []pregel.Emission) bool {
	o.mu.Lock()
	o.between.Failures++
	o.between.Failed = failure.Type + ": " + failure.Error()
	o.between.Emitted, o.between.RetryAt = emitted, time.Time{}
	if wait > 0 {
		o.between.RetryAt = o.now().Add(wait)
	}
	o.mu.Unlock()
	return o.store == nil || o.store.Holds(ctx, wait, true) || o.giveBack()
}

func (o *Outbox) now() time.Time {
	if o.store == nil {
		return time.Now()
	}
	return o.store.Now()
}

// Wait is how long the task has to wait for its next attempt, 0 for not at all.
func (o *Outbox) Wait() time.Duration {
	at := o.CarryOver().RetryAt
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(o.now()), 0)
}

// pause waits until the next attempt may begin. It reports false when ctx ended first, or the task is given back.
func (o *Outbox) pause(ctx context.Context) bool {
	wait, leaving := o.Wait(), (<-chan struct{})(nil)
	if o.IsReturned() {
		return false
	}
	if wait > 0 && o.store != nil {
		if leaving = o.store.Leaving(); !o.store.Holds(ctx, wait, false) {
			return o.giveBack()
		}
	}
	if wait == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-leaving:
		return o.giveBack()
	case <-ctx.Done():
		return false
	}
}

// Yield is the outcome of a task that is given back with these entries. begun says that it is given back in the middle of
// an attempt, which has not failed then, and whose stream is void; suspect and lost are those of [Info].
func (o *Outbox) Yield(entries []ledger.Entry, begun, suspect, lost bool) (pregel.Outcome, error) {
	left := o.CarryOver()
	left.Suspect, left.Lost = suspect, lost
	if begun {
		left.Begun, left.RetryAt, left.Failed = true, time.Time{}, ""
	}
	if o.store != nil {
		left.Emitted = KeepEmitted(left.Emitted, max(o.store.Room(o), 0))
	}
	stored, err := graphadapter.EncodeCarryOver(entries, left)
	return pregel.Outcome{Yielded: true, Ledger: stored, Kept: KeptOf(o.task, entries)}, err
}

func (o *Outbox) giveBack() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.returned = true
	return false
}

// IsReturned reports whether the task is given back before its next attempt.
func (o *Outbox) IsReturned() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.returned
}
