package taskrun

import (
	"time"

	"context"

	"superstep.dev/graphadapter"
)

// yieldPatience is how long a task that is given back waits for the calls under way, whose results would be lost.
const yieldPatience = 5 * time.Minute

// outermost is the execution that a called graph's tasks are part of, or a itself.
func (a *attempt) outermost() *attempt {
	for a.outer != nil {
		a = a.outer.attempt
	}
	return a
}

// yield ends the execution, to be run again: at once, or once the calls under way have ended. No new one begins. claim is
// a thread-wide key that it wants to own then, "" for none.
func (a *attempt) yield(claim string) {
	a = a.outermost()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.yielding || a.closed {
		return
	}
	a.yielding, a.claim = true, claim
	a.patience = time.AfterFunc(yieldPatience, func() { a.stop(graphadapter.ErrYielded) })
	if a.calls == 0 {
		a.stop(graphadapter.ErrYielded)
	}
}

// isYielding reports whether the execution is being given back.
func (a *attempt) isYielding() bool {
	a = a.outermost()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.yielding
}

// begin counts one more call under way, as soon as whoever runs the task lets it begin.
func (t *TaskRun) begin(ctx context.Context) error {
	if t.env.Begin != nil {
		release := t.idle.hold()
		err := t.env.Begin(ctx)
		release()
		if err != nil {
			return err
		}
	}
	return t.beginCall()
}

// beginCall counts one more call under way.
func (a *attempt) beginCall() error {
	a = a.outermost()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return graphadapter.ErrFenced
	case a.yielding:
		return graphadapter.ErrYielded
	}
	a.calls++
	return nil
}

// endCall counts one call less. The last one ends an execution that is being given back.
func (a *attempt) endCall() {
	a = a.outermost()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls--
	if a.yielding && a.calls == 0 {
		a.stop(graphadapter.ErrYielded)
	}
}

// stop ends the node's context.
func (a *attempt) stop(cause error) {
	a.cancel(cause)
	a.inline.wait()
}

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

// own returns nil when the task owns a thread-wide key. Otherwise the task is given back to claim it.
func (a *attempt) own(key string) error {
	a = a.outermost()
	if _, owned := a.task.Kept[key]; owned || a.env.Alone {
		return nil
	}
	a.yield(key)
	return graphadapter.ErrYielded
}
