package segment

import (
	"context"
	"errors"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

func input(text string) pregel.Input { return pregel.Input{Value: pregel.Value(text)} }

func payTask() *pregel.Task {
	return &pregel.Task{
		Step: 3, Path: "pay", Node: "pay", StepsLeft: 7,
		State: map[string]pregel.Held{"amount": pregel.Hold(pregel.Value("250"))},
	}
}

// calling makes a node of a function of its task.
func calling(fn func(ctx context.Context, t *taskrun.TaskRun) error) graphadapter.NodeFunc {
	return func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		t, ok := taskrun.TaskFrom(ctx)
		if !ok {
			return pregel.Command{}, errors.New("the node has no task")
		}
		return pregel.Command{}, fn(ctx, t)
	}
}

// RunSegment is OpenSegment and Run in one, and has read the result as the run reads it.
func RunSegment(ctx context.Context, g *graphadapter.Graph, req *Request, host Host) (Result, error) {
	s, err := OpenSegment(g, req, false, nil, nil)
	if err != nil {
		return Result{}, err
	}
	result, err := s.Run(ctx, host)
	if err != nil {
		return Result{}, err
	}
	return result.asStored()
}

// asStored is what a segment returned as its reader finds it.
func (r *Result) asStored() (Result, error) {
	encoded, err := r.Encode()
	if err != nil {
		return Result{}, err
	}
	return DecodeWhole(encoded)
}
