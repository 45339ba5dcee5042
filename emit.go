package superstep

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
)

// Emit puts a value, which encodes as JSON, on the run's custom stream: at once for those who listen, and with the
// node's result for those who read later. A node that runs again emits again. One attempt may emit 10,000 values, of
// 256 KiB each and 1 MiB together; beyond that Emit fails and the value is dropped.
func Emit(ctx context.Context, v any) error {
	return emit(ctx, v, (*taskrun.TaskRun).Emit)
}

// EmitMessage is Emit for the messages stream: m is a message, or a piece of one that has the id of the whole. A
// message with that id that the node then writes is not streamed again, so emit all of it, or only others. The bounds
// are those of Emit, and both count together.
func EmitMessage(ctx context.Context, m Message) error {
	return emit(ctx, m, (*taskrun.TaskRun).EmitMessage)
}

func emit(ctx context.Context, v any, to func(*taskrun.TaskRun, json.RawMessage) error) error {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return fmt.Errorf("emit: %w", ErrOutsideNode)
	}
	raw, err := encodeJSON(v)
	if err != nil {
		return graphadapter.Permanent(fmt.Errorf("%semit: a value of type %v does not encode as JSON: %w",
			place(t.Info().Graph, t.Info().Node), reflect.TypeOf(v), err))
	}
	return to(t, raw)
}
