package taskrun

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter"
)

// bound makes the node's context of ctx, which ends when the execution does. The node's timeouts end it too, with a
// *graphadapter.TimeoutError as its cause.
func (a *attempt) bound(ctx context.Context) context.Context {
	ctx, a.cancel = context.WithCancelCause(ctx)
	run, idle := a.timeouts()
	fail := func(kind string, limit time.Duration) error {
		return &graphadapter.TimeoutError{Graph: a.info.Graph, Node: a.info.Node, Kind: kind, Limit: limit}
	}
	if idle > 0 {
		a.idle = startIdleTimer(idle, func() { a.stop(fail(graphadapter.TimeoutIdle, idle)) })
	}
	if run > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, run, fail(graphadapter.TimeoutRun, run))
		a.free = append(a.free, context.AfterFunc(ctx, a.inline.wait), func() bool { cancel(); return true })
	}
	return ctx
}

// unbound frees what bounds the node's context.
func (a *attempt) unbound() {
	a.idle.stop()
	for _, free := range a.free {
		free()
	}
}

// timeouts returns the attempt's limits: those of the Send that made the task (section 2.5 of the semantics), else the
// node's, those of its function before those of the Spec.
func (a *attempt) timeouts() (run, idle time.Duration) {
	if own := a.task.Timeouts; own.Bounds() {
		return graphadapter.Milliseconds(own.RunTimeout), graphadapter.Milliseconds(own.IdleTimeout)
	}
	run, idle = a.node.RunTimeout, a.node.IdleTimeout
	spec, ok := a.graph.NodeSpec(a.task.Node)
	if !ok {
		return run, idle
	}
	if run == 0 {
		run = graphadapter.Milliseconds(spec.RunTimeout)
	}
	if idle == 0 {
		idle = graphadapter.Milliseconds(spec.IdleTimeout)
	}
	return run, idle
}

// idleTimer calls expired after limit without progress. A nil timer does nothing.
type idleTimer struct {
	limit time.Duration

	mu    sync.Mutex
	holds int
	timer *time.Timer
}

func startIdleTimer(limit time.Duration, expired func()) *idleTimer {
	return &idleTimer{limit: limit, timer: time.AfterFunc(limit, expired)}
}

// progress starts the time anew.
func (t *idleTimer) progress() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == 0 {
		t.timer.Reset(t.limit)
	}
}

// hold stops the time until the returned function is called: a wait that the engine prescribes is not the node's.
func (t *idleTimer) hold() (release func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++
	t.timer.Stop()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.holds--
		if t.holds == 0 {
			t.timer.Reset(t.limit)
		}
	}
}

func (t *idleTimer) stop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++ // later progress must not start it again
	t.timer.Stop()
}
