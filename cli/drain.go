package cli

import (
	"context"
	"time"
)

// drain measures how a worker comes to its end.
type drain struct {
	now   func() time.Time
	stop  func() bool
	began chan time.Time
}

// newDrain calls begin when ctx ends.
func newDrain(ctx context.Context, now func() time.Time, begin func()) *drain {
	d := &drain{now: now, began: make(chan time.Time, 1)}
	d.stop = context.AfterFunc(ctx, func() {
		at := now()
		begin()
		d.began <- at
	})
	return d
}

// end is called when the worker has returned. It reports whether that was a drain, and how long it took.
func (d *drain) end() (drained bool, took time.Duration) {
	if d.stop() {
		return false, 0
	}
	at := <-d.began
	return true, d.now().Sub(at)
}
