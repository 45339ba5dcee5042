package main

import (
	"context"
	"errors"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// taskHost lets scripts use the task that their context belongs to.
type taskHost struct{}

func (taskHost) ask(ctx context.Context, question any) (any, error) {
	task, ok := graphadapter.TaskFrom(ctx)
	if !ok {
		return nil, graphadapter.ErrOutsideNode
	}
	answer, err := task.Ask(ctx, encode(question), nil, "")
	if err != nil {
		return nil, err
	}
	return decodeValue(answer)
}

func (taskHost) emit(ctx context.Context, value any) error {
	task, ok := graphadapter.TaskFrom(ctx)
	if !ok {
		return graphadapter.ErrOutsideNode
	}
	return task.Emit(encode(value))
}

func (taskHost) call(ctx context.Context, graph string, input any) (any, error) {
	output, err := invokeNested(ctx, graph, encode(input))
	if err != nil {
		return nil, err
	}
	return object(output), nil
}

// errNoNested says that the driver cannot run a graph inside a task.
var errNoNested = errors.New("the driver cannot run a graph from a node's code")

// invokeNested runs a subgraph inside the task that ctx belongs to.
func invokeNested(context.Context, string, pregel.Value) (map[string]pregel.Value, error) {
	return nil, errNoNested
}
