package main

import (
	"context"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/test/conformance/trace"
)

// taskHost lets scripts use the task that their context belongs to.
type taskHost struct{ graphs *builder }

func (taskHost) ask(ctx context.Context, question any) (any, error) {
	task, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return nil, graphadapter.ErrOutsideNode
	}
	answer, err := task.Ask(ctx, trace.Encode(question), nil, "")
	if err != nil {
		return nil, err
	}
	return trace.Decode(answer)
}

func (taskHost) emit(ctx context.Context, value any) error {
	task, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return graphadapter.ErrOutsideNode
	}
	return task.Emit(trace.Encode(value))
}

func (h taskHost) call(ctx context.Context, graph string, input any) (any, error) {
	called, err := h.graphs.called(graph)
	if err != nil {
		return nil, err
	}
	output, err := taskrun.InvokeNested(ctx, called, trace.Encode(input))
	if err != nil {
		return nil, err
	}
	return object(output), nil
}
