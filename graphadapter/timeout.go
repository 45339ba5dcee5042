package graphadapter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The kinds of a [TimeoutError].
const (
	// TimeoutRun: the attempt took longer than the node's RunTimeout.
	TimeoutRun = "run"
	// TimeoutIdle: the attempt made no progress for the node's IdleTimeout.
	TimeoutIdle = "idle"
)

// TimeoutError says that an attempt of a node was cut off. It is a failure of the node, which its retry policy may
// repeat; what the attempt wrote is discarded.
type TimeoutError struct {
	Graph, Node string
	// Kind is [TimeoutRun] or [TimeoutIdle].
	Kind  string
	Limit time.Duration
}

func (e *TimeoutError) Error() string {
	if e.Kind == TimeoutIdle {
		return fmt.Sprintf("node %q of graph %q made no progress for %v (its idle timeout)", e.Node, e.Graph, e.Limit)
	}
	return fmt.Sprintf("node %q of graph %q ran longer than %v (its run timeout)", e.Node, e.Graph, e.Limit)
}

// StepTimeoutError says that a superstep took longer than the run allows. What its finished tasks wrote is kept; the
// thread can be continued.
type StepTimeoutError struct {
	Graph string
	Step  int
	Limit time.Duration
}

func (e *StepTimeoutError) Error() string {
	return fmt.Sprintf("superstep %d of graph %q ran longer than %v (the run's step timeout): continue the thread, finished "+
		"tasks do not run again", e.Step, e.Graph, e.Limit)
}

// ErrorType names the kind of failure in stored data.
func (e *StepTimeoutError) ErrorType() string { return "StepTimeout" }

// Timeout marks the error as a timeout, as in package net.
func (e *TimeoutError) Timeout() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *TimeoutError) ErrorType() string { return "Timeout" }

// bound makes the node's context of ctx, which ends when the execution does. The node's timeouts end it too, with a
// *TimeoutError as its cause.
func (a *attempt) bound(ctx context.Context) context.Context {
	ctx, a.cancel = context.WithCancelCause(ctx)
	run, idle := a.timeouts()
	fail := func(kind string, limit time.Duration) error {
		return &TimeoutError{Graph: a.info.Graph, Node: a.info.Node, Kind: kind, Limit: limit}
	}
	if idle > 0 {
		a.idle = startIdleTimer(idle, func() { a.stop(fail(TimeoutIdle, idle)) })
	}
	if run > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, run, fail(TimeoutRun, run))
		a.free = append(a.free, context.AfterFunc(ctx, a.stayed.wait), func() bool { cancel(); return true })
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
		return milliseconds(own.RunTimeout), milliseconds(own.IdleTimeout)
	}
	run, idle = a.node.RunTimeout, a.node.IdleTimeout
	spec, ok := a.graph.nodeSpec(a.task.Node)
	if !ok {
		return run, idle
	}
	if run == 0 {
		run = milliseconds(spec.RunTimeout)
	}
	if idle == 0 {
		idle = milliseconds(spec.IdleTimeout)
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
