package superstep

import (
	"context"
	"fmt"
	"reflect"

	"superstep.dev/graphadapter"
)

// Emit puts a value, which encodes as JSON, on the run's custom stream: at once for those who listen, and with the
// node's result for those who read later. A node that runs again emits again. One attempt may emit 10,000 values, of
// 256 KiB each and 1 MiB together; beyond that Emit fails and the value is dropped.
func Emit(ctx context.Context, v any) error {
	t, ok := graphadapter.TaskFrom(ctx)
	if !ok {
		return fmt.Errorf("emit: %w", ErrOutsideNode)
	}
	raw, err := encodeJSON(v)
	if err != nil {
		return graphadapter.Permanent(fmt.Errorf("%semit: a value of type %v does not encode as JSON: %w",
			place(t.Info().Graph, t.Info().Node), reflect.TypeOf(v), err))
	}
	return t.Emit(raw)
}
