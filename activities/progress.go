package activities

import (
	"context"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// attempt is the node's attempt, as its retry policy counts: lost workers and unserved tasks are none of its.
func (o *owner) attempt() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.progress.Failures + 1
}

// workersLost counts the losses in a row that count against the task.
func (o *owner) workersLost() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.progress.Counted(o.info.Attempt)
}

// onTrial runs the execution on trial if its losses want it; see lease.takeTurn.
func (o *owner) onTrial(ctx context.Context) (release func(), err error) {
	o.mu.Lock()
	losses := o.progress.Losses
	o.mu.Unlock()
	return o.takeTurn(ctx, losses, func(change func(graphadapter.Losses) graphadapter.Losses) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.progress.Lost = o.progress.Lost || o.progress.Any(o.info.Attempt)
		o.progress.Losses = change(o.progress.Losses)
	})
}

// hasLost reports whether an execution of the task was lost with its worker.
func (o *owner) hasLost() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.progress.Lost || o.progress.Any(o.info.Attempt)
}

// accountLocked records that how this execution ends is known.
func (o *owner) accountLocked() {
	o.progress.Lost = o.progress.Lost || o.progress.Any(o.info.Attempt)
	o.progress.Losses = o.progress.Ended(o.info.Attempt)
}

// countFailure records that the node failed and will be tried again after that wait, and what it emitted.
func (o *owner) countFailure(ctx context.Context, wait time.Duration, emitted []pregel.Emission) error {
	o.mu.Lock()
	o.progress.Failures++
	o.accountLocked()
	o.progress.Emitted = append(o.progress.Emitted, emitted...)
	o.progress.RetryAt = o.inTime(wait)
	o.mu.Unlock()
	return o.send(ctx)
}

// inTime is the server's time after that wait, the zero time for none.
func (o *owner) inTime(wait time.Duration) time.Time {
	if wait <= 0 {
		return time.Time{}
	}
	return o.info.StartedTime.Add(time.Since(o.began) + wait)
}

// waitsFor is how long the task still has to wait for its next attempt. Only the server's clock counts: the attempt
// before may have been another machine's.
func (o *owner) waitsFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.progress.RetryAt.IsZero() {
		return 0
	}
	return o.progress.RetryAt.Sub(o.info.StartedTime)
}

// emitted is what the failed attempts streamed.
func (o *owner) emitted() []pregel.Emission {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.progress.Emitted)
}

// countGivenBack records that this worker gave the task back: it does not serve it, or it stops.
func (o *owner) countGivenBack(ctx context.Context) error {
	o.mu.Lock()
	o.accountLocked()
	o.mu.Unlock()
	return o.send(ctx)
}
