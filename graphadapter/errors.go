package graphadapter

import (
	"errors"
	"fmt"
	"time"
)

// ErrInterrupted is what [TaskRun.Ask] returns while there is no answer. A node passes it on; the task then waits,
// even if the node swallows it.
var ErrInterrupted = errors.New("superstep: the task waits for an answer")

// ErrFenced says that this execution of the task no longer counts: another one took over, or the run is over.
var ErrFenced = errors.New("superstep: another execution owns this task: stop")

// ErrYielded says that this execution of the task is given back, to be run again with what it has recorded. A [Journal]
// returns it from Record when it holds the entry, but its task has to end for more to be stored; an effect's intent it
// then does not hold. A node passes it on; the task is given back even if the node swallows it.
var ErrYielded = errors.New("superstep: the task is given back, and runs again with what it has recorded")

// RouteError says that a branch chose something that is not a way on. It is a mistake in the graph; the default retry
// policy does not repeat it.
type RouteError struct {
	Graph, Node string
	// Branch is the branch's ordinal among its node's.
	Branch int
	// Route is what the branch returned.
	Route string
	// Message says what is wrong with it, and what would be right.
	Message string
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("branch %d of node %q of graph %q returned %q: %s", e.Branch, e.Node, e.Graph, e.Route, e.Message)
}

// EmitLimitError says that a node emitted too much. The value was not emitted.
type EmitLimitError struct {
	Graph, Node string
	// What is the bound that was reached, in words; Limit is its value.
	What  string
	Limit int
}

func (e *EmitLimitError) Error() string {
	return fmt.Sprintf("node %q of graph %q reached the limit of %d %s: emit less often, or a reference instead of "+
		"the data", e.Node, e.Graph, e.Limit, e.What)
}

// ErrOutsideNode is returned by everything that needs a running task when the context is not a node's.
var ErrOutsideNode = errors.New("superstep: called outside a node: pass on the context that the node was given")

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
	// LeftAfter is how long after its time the node was left behind, as it did not look at its context; 0 for a node that has returned. Its
	// goroutine may still run, beside the next attempt.
	LeftAfter time.Duration
}

func (e *TimeoutError) Error() string {
	what := fmt.Sprintf("ran longer than %v (its run timeout)", e.Limit)
	if e.Kind == TimeoutIdle {
		what = fmt.Sprintf("made no progress for %v (its idle timeout)", e.Limit)
	}
	text := fmt.Sprintf("node %q of graph %q %s", e.Node, e.Graph, what)
	if e.LeftAfter > 0 {
		text += fmt.Sprintf("; it had not returned %v after that and was left behind, so it may still run beside the next attempt: have it end with "+
			"its context", e.LeftAfter)
	}
	return text
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
