package superstep

import "fmt"

// Result is where a run stands when it no longer runs.
type Result[Out any] struct {
	// Status is StatusFinished, that of a run that rests ([Status.Rests]), or that of a run that ended otherwise.
	Status Status
	// Output holds the graph's output fields as far as they have a value.
	Output Out
	// Questions are open: answer them with Resume or ResumeByID.
	Questions []Question
	// Drained is why a run with StatusStopped was asked to stop; "" when it stands at a breakpoint.
	Drained string
	// Paused says who paused the run; nil when nobody did.
	Paused *PauseView
}

// RunError says that a run ended without finishing.
type RunError struct {
	Graph, Thread string
	// Node is the node that failed, "" when none did.
	Node string
	// Status says how it ended: one for which Failed reports true, StatusCancelled or StatusTerminated.
	Status Status
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
	case StatusFailed, StatusTimedOut, StatusOutOfBudget:
		return fmt.Sprintf("%s failed: %s", run, e.Message)
	case StatusCancelled:
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

// resultOf decodes a view; cause is what the runtime knows of a failure, or why it has no view.
func resultOf[Out any](view ThreadView, cause error) (Result[Out], error) {
	r := Result[Out]{Status: view.Status, Questions: view.Questions, Drained: view.Drained, Paused: view.Paused}
	switch view.Status {
	case StatusFailed, StatusTimedOut, StatusOutOfBudget, StatusCancelled, StatusTerminated:
		return r, runError(view, cause)
	}
	if cause != nil {
		return r, cause
	}
	var err error
	r.Output, err = decodeOutput[Out](view.Graph, view.Output)
	return r, err
}

func runError(view ThreadView, cause error) *RunError {
	e := &RunError{Graph: view.Graph, Thread: view.Thread, Status: view.Status, Message: view.Error, Cause: cause}
	if node, ok := nodeErrorOf(cause); ok {
		e.Node = node.Node
	}
	return e
}
