package main

import (
	"errors"

	"superstep.dev/graphadapter/pregel"
)

// The error types that results name.
const (
	typeNodeFailure        = "NodeFailure"
	typeInvalidUpdate      = "InvalidUpdateError"
	typeRecursion          = "GraphRecursionError"
	typeEmptyInput         = "EmptyInputError"
	typeMultipleInterrupts = "MultipleInterruptsError"
	typeParentCommand      = "ParentCommand"
	typeCompile            = "CompileError"
	typeOther              = "Error"
)

// errorOf is an engine's error as an ERROR. A node's failure comes first: what it failed of is inside it.
func errorOf(err error) map[string]any {
	var node *pregel.NodeError
	if errors.As(err, &node) {
		out := map[string]any{"type": nodeErrorType(node)}
		if out["type"] == typeNodeFailure {
			out["message"] = node.Message
		}
		return out
	}
	return map[string]any{"type": errorType(err)}
}

func errorType(err error) string {
	var (
		invalid   *pregel.InvalidUpdateError
		recursion *pregel.RecursionError
		empty     *pregel.EmptyInputError
		multiple  *pregel.MultipleInterruptsError
		parent    *pregel.ParentCommandError
		compile   *pregel.CompileError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Cause != nil:
		return typeOther // a reducer's own error, which LangGraph lets through as it is
	case errors.As(err, &invalid):
		return typeInvalidUpdate
	case errors.As(err, &recursion):
		return typeRecursion
	case errors.As(err, &empty):
		return typeEmptyInput
	case errors.As(err, &multiple):
		return typeMultipleInterrupts
	case errors.As(err, &parent):
		return typeParentCommand
	case errors.As(err, &compile):
		return typeCompile
	}
	return typeOther
}

// nodeErrorTypes are the types that a NodeError may carry, by the engine's names for them. Any other is an Error.
var nodeErrorTypes = map[string]string{
	"NodeFailure":          typeNodeFailure,
	"InvalidUpdateError":   typeInvalidUpdate,
	"GraphRecursionError":  typeRecursion,
	"EmptyInputError":      typeEmptyInput,
	typeMultipleInterrupts: typeMultipleInterrupts,
	"ParentCommand":        typeParentCommand,
}

func nodeErrorType(e *pregel.NodeError) string {
	if t, ok := nodeErrorTypes[e.Type]; ok {
		return t
	}
	return typeOther
}

// taskError is a failed task's error in a STATE: the message of a NodeFailure, else the error's type.
func taskError(e *pregel.NodeError) string {
	if t := nodeErrorType(e); t != typeNodeFailure {
		return t
	}
	return e.Message
}
