package superstep

import (
	"errors"
	"fmt"
	"strings"
)

var (
	errAccumulate = errors.New(`the tag superstep:"accumulate" is for superstep.Topic only`)
	errUnguarded  = errors.New(`the tag superstep:"unguarded" is for superstep.Ephemeral and superstep.Untracked only`)
)

// none refuses every option.
func (o fieldOptions) none() error {
	switch {
	case o.accumulate:
		return errAccumulate
	case o.unguarded:
		return errUnguarded
	}
	return nil
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
	return fmt.Sprintf("cannot read %s as %s: %s. If the type changed, migrate the thread or give the field a new name",
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
