package pregel

import (
	"errors"
	"fmt"
	"strings"
)

// InvalidUpdateError says that the writes of a superstep cannot be applied. Nothing of the superstep was.
type InvalidUpdateError struct {
	Graph, Channel string
	// Nodes are those whose writes of the superstep the channel was to take, in apply order, each once: one alone when its tasks
	// wrote more than once, none for writes from outside.
	Nodes []string
	// Code is LangGraph's: INVALID_CONCURRENT_GRAPH_UPDATE, INVALID_GRAPH_NODE_RETURN_VALUE.
	Code    string
	Message string
	// Cause is what the reducer said, when it was one.
	Cause error `json:"-"`
}

func (e *InvalidUpdateError) Error() string {
	var b strings.Builder
	if e.Code != "" {
		b.WriteString(e.Code + ": ")
	}
	if e.Channel != "" {
		fmt.Fprintf(&b, "channel %q of graph %q: ", e.Channel, e.Graph)
	}
	if len(e.Nodes) > 0 {
		b.WriteString("written by " + namesOf(e.Nodes) + ": ")
	}
	b.WriteString(e.Message)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// mostNames bounds the nodes that an error names.
const mostNames = 10

// namesOf lists names, the first of them when they are many.
func namesOf(names []string) string {
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more nodes", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}

// Unwrap returns the reducer's error.
func (e *InvalidUpdateError) Unwrap() error { return e.Cause }

// RecursionError says that a run needed more supersteps than its limit. The thread can be continued.
type RecursionError struct {
	Graph string
	Limit int
}

func (e *RecursionError) Error() string {
	return fmt.Sprintf("GRAPH_RECURSION_LIMIT: graph %q reached its limit of %d supersteps without finishing: "+
		"raise the recursion limit or look for a loop without an exit", e.Graph, e.Limit)
}

// EmptyInputError says that a run got neither input nor anything to continue.
type EmptyInputError struct{ Graph string }

func (e *EmptyInputError) Error() string {
	return fmt.Sprintf("graph %q got no input and there is nothing to continue: give it a JSON object", e.Graph)
}

// MultipleInterruptsError says that a scalar answer is ambiguous.
type MultipleInterruptsError struct {
	Graph string
	IDs   []string
}

func (e *MultipleInterruptsError) Error() string {
	return fmt.Sprintf("graph %q waits for several answers (%s): answer by question id",
		e.Graph, strings.Join(e.IDs, ", "))
}

// ParentCommandError says that a root graph's node addressed a parent graph. Where the graph was called from a node's
// code the Command is for that node's graph.
type ParentCommandError struct {
	Graph, Node string
	Command     *Command
}

func (e *ParentCommandError) Error() string {
	return fmt.Sprintf("node %q of graph %q sent a command to the parent graph, but this graph has none", e.Node, e.Graph)
}

// DrainedError says that a run was asked to stop and did, between two supersteps. The thread can be continued.
type DrainedError struct{ Graph, Reason string }

func (e *DrainedError) Error() string {
	return fmt.Sprintf("graph %q was drained: %s: continue the thread without input", e.Graph, e.Reason)
}

// ErrorType names the kind of failure in stored data, as LangGraph does; so do those below. The error of a
// reducer is none of LangGraph's own kinds.
func (e *InvalidUpdateError) ErrorType() string {
	if e.Cause != nil {
		return "ReducerError"
	}
	return "InvalidUpdateError"
}

// ErrorType names the kind of failure in stored data.
func (e *RecursionError) ErrorType() string { return "GraphRecursionError" }

// ErrorType names the kind of failure in stored data.
func (e *EmptyInputError) ErrorType() string { return "EmptyInputError" }

// ErrorType names the kind of failure in stored data.
func (e *MultipleInterruptsError) ErrorType() string { return "MultipleInterruptsError" }

// ErrorType names the kind of failure in stored data.
func (e *ParentCommandError) ErrorType() string { return "ParentCommand" }

// NoCheckpointError says that a call names a checkpoint that the thread does not have.
type NoCheckpointError struct{ Thread, Checkpoint string }

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("thread %q has no checkpoint %q: list them with the thread's history", e.Thread, e.Checkpoint)
}

// CompileError says what is wrong with a Spec. Compile joins one for each mistake.
type CompileError struct {
	Graph, Node string
	Message     string
}

func (e *CompileError) Error() string {
	if e.Node != "" {
		return fmt.Sprintf("graph %q: node %q: %s", e.Graph, e.Node, e.Message)
	}
	return fmt.Sprintf("graph %q: %s", e.Graph, e.Message)
}

// SpecVersionError says that a Spec was written by a newer version than this engine understands.
type SpecVersionError struct {
	Graph     string
	Got, Most int
}

func (e *SpecVersionError) Error() string {
	return fmt.Sprintf("graph %q has spec version %d, this worker understands up to %d: run a newer worker",
		e.Graph, e.Got, e.Most)
}

// UnknownReducerError says that a Spec names a reducer that this process does not have.
type UnknownReducerError struct{ Graph, Channel, Reducer string }

func (e *UnknownReducerError) Error() string {
	return fmt.Sprintf("graph %q: channel %q needs the reducer %q, which this worker does not have: "+
		"deploy a worker that registers it", e.Graph, e.Channel, e.Reducer)
}

// AsNodeError turns an error that ended a task into data, keeping the name of the engine's own kinds.
func AsNodeError(graph, node string, err error) *NodeError {
	var already *NodeError
	if errors.As(err, &already) {
		return already
	}
	kind := "Error"
	var named interface {
		error
		ErrorType() string
	}
	if errors.As(err, &named) {
		kind = named.ErrorType()
	}
	return &NodeError{Type: kind, Message: err.Error(), Graph: graph, Node: node}
}

// cancelled reports whether err says that a task was stopped from outside.
func cancelled(err error) bool {
	failure, ok := err.(*NodeError)
	return ok && failure.Type == CancelledType
}

// errorJSON is an error of a suspended loop. One of the fields is set: Text when the error is none of the engine's kinds.
type errorJSON struct {
	Node      *NodeError          `json:"node,omitempty"`
	Update    *InvalidUpdateError `json:"update,omitempty"`
	Cause     *string             `json:"cause,omitempty"` // of Update
	Recursion *RecursionError     `json:"recursion,omitempty"`
	Input     *EmptyInputError    `json:"input,omitempty"`
	Parent    *ParentCommandError `json:"parent,omitempty"`
	Drained   *DrainedError       `json:"drained,omitempty"`
	Budget    *BudgetError        `json:"budget,omitempty"`
	Text      string              `json:"text,omitempty"`
}

func errorOut(err error) *errorJSON {
	switch err := err.(type) {
	case nil:
		return nil
	case *NodeError:
		return &errorJSON{Node: err}
	case *InvalidUpdateError:
		out := &errorJSON{Update: err}
		if err.Cause != nil {
			out.Cause = new(err.Cause.Error())
		}
		return out
	case *RecursionError:
		return &errorJSON{Recursion: err}
	case *EmptyInputError:
		return &errorJSON{Input: err}
	case *ParentCommandError:
		return &errorJSON{Parent: err}
	case *DrainedError:
		return &errorJSON{Drained: err}
	case *BudgetError:
		return &errorJSON{Budget: err}
	}
	return &errorJSON{Text: err.Error()}
}

func errorIn(in *errorJSON) error {
	switch {
	case in == nil:
		return nil
	case in.Node != nil:
		return in.Node
	case in.Update != nil:
		if in.Cause != nil {
			in.Update.Cause = errors.New(*in.Cause)
		}
		return in.Update
	case in.Recursion != nil:
		return in.Recursion
	case in.Input != nil:
		return in.Input
	case in.Parent != nil:
		return in.Parent
	case in.Drained != nil:
		return in.Drained
	case in.Budget != nil:
		return in.Budget
	}
	return errors.New(in.Text)
}
