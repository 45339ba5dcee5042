package pregel

import "errors"

// errorJSON is one of the engine's errors in a suspended loop. Kind says which; an error of no such kind is its text.
type errorJSON struct {
	Kind    string     `json:"kind,omitempty"`
	Failure *NodeError `json:"failure,omitempty"`
	Graph   string     `json:"graph,omitempty"`
	Node    string     `json:"node,omitempty"`
	Channel string     `json:"channel,omitempty"`
	Nodes   []string   `json:"nodes,omitempty"`
	Code    string     `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
	Cause   *string    `json:"cause,omitempty"`
	Limit   int        `json:"limit,omitempty"`
	Command *Command   `json:"command,omitempty"`
}

// The kinds of errors that end a run or a task.
const (
	nodeKind      = "node"
	updateKind    = "update"
	recursionKind = "recursion"
	inputKind     = "input"
	parentKind    = "parent"
	drainedKind   = "drained"
)

func errorOut(err error) *errorJSON {
	switch err := err.(type) {
	case nil:
		return nil
	case *NodeError:
		return &errorJSON{Kind: nodeKind, Failure: err}
	case *InvalidUpdateError:
		out := &errorJSON{Kind: updateKind, Graph: err.Graph, Channel: err.Channel, Nodes: err.Nodes, Code: err.Code, Message: err.Message}
		if err.Cause != nil {
			cause := err.Cause.Error()
			out.Cause = &cause
		}
		return out
	case *RecursionError:
		return &errorJSON{Kind: recursionKind, Graph: err.Graph, Limit: err.Limit}
	case *EmptyInputError:
		return &errorJSON{Kind: inputKind, Graph: err.Graph}
	case *ParentCommandError:
		return &errorJSON{Kind: parentKind, Graph: err.Graph, Node: err.Node, Command: err.Command}
	case *DrainedError:
		return &errorJSON{Kind: drainedKind, Graph: err.Graph, Message: err.Reason}
	default:
		return &errorJSON{Message: err.Error()}
	}
}

func errorIn(in *errorJSON) error {
	if in == nil {
		return nil
	}
	switch in.Kind {
	case nodeKind:
		if in.Failure != nil {
			return in.Failure
		}
	case updateKind:
		err := &InvalidUpdateError{Graph: in.Graph, Channel: in.Channel, Nodes: in.Nodes, Code: in.Code, Message: in.Message}
		if in.Cause != nil {
			err.Cause = errors.New(*in.Cause)
		}
		return err
	case recursionKind:
		return &RecursionError{Graph: in.Graph, Limit: in.Limit}
	case inputKind:
		return &EmptyInputError{Graph: in.Graph}
	case parentKind:
		return &ParentCommandError{Graph: in.Graph, Node: in.Node, Command: in.Command}
	case drainedKind:
		return &DrainedError{Graph: in.Graph, Reason: in.Message}
	}
	return errors.New(in.Message)
}
