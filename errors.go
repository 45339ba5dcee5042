package superstep

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/guard"
	"superstep.dev/thread"
)

// The errors of calls within a node that callers tell apart with errors.Is. Those of calls on a thread are in package thread.
var (
	// ErrInterrupted is what [Interrupt], [Approve], [WaitEvent] and a graph that a node invokes return while there is no answer, and
	// [Effect.Call] while a person has to decide about the write. A node returns it; the task then waits, even if the node
	// swallows it.
	ErrInterrupted = graphadapter.ErrInterrupted
	// ErrEventTimeout is what [WaitEvent] returns when the event did not come in time, as an [*EventTimeoutError].
	ErrEventTimeout = graphadapter.ErrEventTimeout
	// ErrAnswerTimeout is what [Interrupt] returns when nobody has answered before the deadline, as an [*AnswerTimeoutError].
	ErrAnswerTimeout = errors.New("superstep: nobody answered in time")
	// ErrYielded is what tasks and effects return when this execution of the node ends here and the node begins again, with
	// what it has recorded: to own a thread-wide key, or because its record is as large as the run can hold for one execution.
	// Pass it on; the node begins again even if it is swallowed. Nothing that was recorded is repeated.
	ErrYielded = graphadapter.ErrYielded
	// ErrUndone is what [Effect.Call] fails with when the target had a part of the write and a person had that undone. No retry
	// policy repeats it; a retry of the thread makes another write, under a key of its own.
	ErrUndone = taskrun.ErrUndone
	// ErrOutsideNode is returned by all that needs a running node when its context is not that of one: [Task], [Go], [Effect.Call],
	// [Interrupt], [Approve], [WaitEvent], [Spend], [Emit], [RunContext], and what writes to a [Store].
	ErrOutsideNode = graphadapter.ErrOutsideNode
	// ErrOutsideEntrypoint is returned by [Previous] and [Save] when their context is not that of a [NewEntrypoint]'s function.
	ErrOutsideEntrypoint = errors.New("superstep: called outside an entrypoint: pass on the context that its function was given")
	// ErrCallOver says that the time of an effect's call is over, or that its task may be another worker's by now: what was to
	// be sent was not. Return it: the next execution looks up what happened. It is a context.DeadlineExceeded.
	ErrCallOver = taskrun.ErrCallOver
	// ErrOutsideCall says that a request which may change something went through a [GuardedTransport] with a context that is
	// not the one given to Do, Lookup or Compensate, nor made of it. Nothing was sent.
	ErrOutsideCall = guard.ErrOutsideCall
	// ErrSentBefore says that net/http was about to send a request, which may change something, once more on another
	// connection. How often a write is sent is for Do to decide.
	ErrSentBefore = guard.ErrSentBefore
)

// CompileError is one mistake in a graph, found by [StateGraph.Compile].
type CompileError struct {
	// Graph and Node name where it is; Node is "" when it concerns the graph.
	Graph, Node string
	// Call is the place of the call that made it, as "directory/file.go:line".
	Call string
	// Message says what is wrong and, where it is known, what to do.
	Message string
}

// Error implements error in one line.
func (e *CompileError) Error() string {
	out := place(e.Graph, e.Node) + e.Message
	if e.Graph == "" {
		out = `graph "": ` + out
	}
	if e.Call != "" {
		out += fmt.Sprintf(" (%s)", e.Call)
	}
	return out
}

// calledAt returns the place that called the exported function that calls it. The path is cut to the file and its
// directory: enough to find it, and the same on every machine.
func calledAt() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return ""
	}
	file = filepath.ToSlash(file)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(file)), path.Base(file)), line)
}

// StateError says that a node's state and its Go type do not fit: a stored value that does not decode when the node
// reads it, or a written one that does not encode; or that the run's context does not fit. It fails the node's task; no retry policy repeats that.
type StateError struct {
	Graph, Node string
	// Field is the channel's name, "" when it is the whole input; Type is the Go type.
	Field, Type string
	// Write says that the value was being written, Context that it is the run's context.
	Write, Context bool
	Cause          error
}

// Error implements error in one line. It leaves out graph and node, which the run's own error names.
func (e *StateError) Error() string {
	if e.Context {
		return fmt.Sprintf("cannot read the run's context as %s: %v", e.Type, e.Cause)
	}
	where := "the input"
	if e.Field != "" {
		where = fmt.Sprintf("field %q", e.Field)
	}
	if e.Write {
		return fmt.Sprintf("cannot write %s: its %s does not encode as JSON: %v", where, e.Type, e.Cause)
	}
	return fmt.Sprintf("cannot read %s as %s: %s. If the type changed, write the value anew (superstep update) or give the field a new name",
		where, e.Type, strings.TrimPrefix(e.Cause.Error(), "json: "))
}

// Unwrap returns the error of the decoder or encoder.
func (e *StateError) Unwrap() error { return e.Cause }

// TargetError says that a node or a routing function chose a way that its graph does not have.
type TargetError struct {
	Graph, Node string
	// Target is the way that was chosen.
	Target string
	// Message says what is wrong with it.
	Message string
}

// Error implements error in one line. It leaves out graph and node, which the run's own error names.
func (e *TargetError) Error() string {
	return fmt.Sprintf("it goes to %q: %s", e.Target, e.Message)
}

// NodeError says why a node's task failed for good. It is data, so it survives the process that saw the failure: what an
// error handler is given, what RetryOn of a subgraph's [RetryPolicy] is given, and what errors.As finds in a
// [*RunError].
type NodeError struct {
	// Type is the error's kind: what its method ErrorType() string says, else the name of its Go type, such as
	// "CardDeclined" for a *pay.CardDeclined; "Timeout", "Panic" and others for what this package finds itself.
	Type string
	// Message is the error's text, of at most 4 KiB.
	Message string
	// Graph and Node name where it happened, inside a subgraph the subgraph's; Node is "" when the superstep itself
	// failed.
	Graph, Node string
}

// Error implements error in one line.
func (e *NodeError) Error() string {
	failure := pregel.NodeError{Type: e.Type, Message: e.Message, Graph: e.Graph, Node: e.Node}
	return failure.Error()
}

// nodeErrorOf returns the engine's failure in err's chain as this package's.
func nodeErrorOf(err error) (*NodeError, bool) {
	var failure *pregel.NodeError
	if !errors.As(err, &failure) {
		return nil, false
	}
	return &NodeError{Type: failure.Type, Message: failure.Message, Graph: failure.Graph, Node: failure.Node}, true
}

// RunError says that a run ended without finishing.
type RunError struct {
	Graph, Thread string
	// Node is the node that failed, "" when none did.
	Node string
	// Status says how it ended: one for which Failed reports true, StatusCancelled or StatusTerminated.
	Status thread.Status
	// Message says why.
	Message string
	// Cause is the failure, such as a *pregel.RecursionError, nil when only the message is known. A node's failure is
	// found with errors.As and a *NodeError.
	Cause error
}

// Error implements error in one line.
func (e *RunError) Error() string {
	run := fmt.Sprintf("the run of graph %q", e.Graph)
	if e.Thread != "" {
		run += fmt.Sprintf(" on thread %q", e.Thread)
	}
	switch e.Status {
	case thread.StatusFailed, thread.StatusTimedOut, thread.StatusOutOfBudget:
		return fmt.Sprintf("%s failed: %s", run, e.Message)
	case thread.StatusCancelled:
		return fmt.Sprintf("%s was cancelled: %s", run, e.Message)
	}
	return fmt.Sprintf("%s ended as %s: %s", run, e.Status, e.Message)
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Cause }

// As finds the failure of a node as a *[NodeError].
func (e *RunError) As(target any) bool {
	into, ok := target.(**NodeError)
	if !ok {
		return false
	}
	failure, ok := nodeErrorOf(e.Cause)
	if ok {
		*into = failure
	}
	return ok
}

func runError(view thread.View, cause error) *RunError {
	e := &RunError{Graph: view.Graph, Thread: view.Thread, Status: view.Status, Message: view.Error, Cause: cause}
	if node, ok := nodeErrorOf(cause); ok {
		e.Node = node.Node
	}
	return e
}

// place is the beginning of a message about a node.
func place(graph, node string) string {
	switch {
	case graph == "":
		return ""
	case node == "":
		return fmt.Sprintf("graph %q: ", graph)
	}
	return fmt.Sprintf("graph %q: node %q: ", graph, node)
}
