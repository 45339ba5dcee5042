package taskrun

import (
	"time"

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
