package superstep

import (
	"errors"

	"superstep.dev/graphadapter/pregel"
)

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
