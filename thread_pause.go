package superstep

import (
	"cmp"
	"context"
)

// Pause keeps the thread's run from starting anything, and returns when that is accepted: the tasks under way end and are
// kept, and Wait tells when the run stands still, with [StatusPaused]. It takes answers and updates meanwhile, and goes on
// with Unpause. A run that is over stays as it is. The reason has at most 1,000 bytes.
func (t *Thread[Out]) Pause(ctx context.Context, reason string, opts ...ControlOption) error {
	a := askerOf(opts)
	_, err := t.runtime.pauseRun(ctx, t.graph, PauseRequest{Thread: t.id, Reason: cmp.Or(reason, a.reason), By: a.by, Token: a.token}, false)
	return err
}

// Unpause lets a paused run go on, and returns when that is accepted. A run that nobody paused stays as it is.
func (t *Thread[Out]) Unpause(ctx context.Context, opts ...ControlOption) error {
	a := askerOf(opts)
	_, err := t.runtime.pauseRun(ctx, t.graph, PauseRequest{Thread: t.id, Reason: a.reason, By: a.by, Token: a.token}, true)
	return err
}
