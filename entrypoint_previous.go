package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// ErrOutsideEntrypoint is returned by [Previous] and [Save] when their context is not that of a [NewEntrypoint]'s function.
var ErrOutsideEntrypoint = errors.New("superstep: called outside an entrypoint: pass on the context that its function was given")

type entryKey struct{}

// entry is one call of an entrypoint's function.
type entry struct {
	task     taskrun.Info
	previous pregel.Value // nil when no run of the thread has finished

	mu    sync.Mutex
	saved pregel.Value // nil when the returned value is kept
}

func (e *entry) kept(returned pregel.Value) pregel.Value {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.saved != nil {
		return e.saved
	}
	return returned
}

// entryOf returns the entrypoint that ctx belongs to. A graph that its function calls is not part of it.
func entryOf(ctx context.Context, call string) (*entry, *taskrun.TaskRun, error) {
	t, inside := taskrun.TaskFrom(ctx)
	e, ok := ctx.Value(entryKey{}).(*entry)
	if !inside || !ok || e.task != t.Info() {
		return nil, nil, fmt.Errorf("%s: %w", call, ErrOutsideEntrypoint)
	}
	return e, t, nil
}

// Previous returns what the thread's last finished run of this entrypoint kept: what it gave to [Save], or else what its
// function returned. It is false when no run has finished. The same run gets the same value however often it is called.
//
// Errors: [ErrOutsideEntrypoint]; *[StateError] when the kept value does not fit T, which no retry repeats.
func Previous[T any](ctx context.Context) (T, bool, error) {
	var v, none T
	e, t, err := entryOf(ctx, "previous")
	if err != nil || e.previous == nil {
		return none, false, err
	}
	if err := decodeJSON(e.previous, &v); err != nil {
		info := t.Info()
		return none, false, graphadapter.Permanent(&StateError{Graph: info.Graph, Node: info.Node,
			Field: pregel.FunctionPrevious, Type: typeName(reflect.TypeFor[T]()), Cause: err})
	}
	return v, true, nil
}

// Save keeps v, any value that encodes as JSON, for [Previous] in the thread's next run, instead of what the function
// returns (LangGraph's entrypoint.final). It is kept when the function returns without an error; the last call counts.
//
// Call it in the function itself. Inside a [Task] or [Go] it fails: a remembered call is not made again, so what it saved
// would be lost whenever the function runs once more.
func Save[T any](ctx context.Context, v T) error {
	e, t, err := entryOf(ctx, "save")
	if err != nil {
		return err
	}
	info := t.Info()
	if t.InCall() {
		return graphadapter.Permanent(fmt.Errorf("%ssave: it is inside a Task, which does not run again: return the value "+
			"from the Task and save it in the entrypoint's function", place(info.Graph, info.Node)))
	}
	raw, err := encodeJSON(v)
	if err != nil {
		return graphadapter.Permanent(&StateError{Graph: info.Graph, Node: info.Node, Field: pregel.FunctionPrevious,
			Type: typeName(reflect.TypeFor[T]()), Write: true, Cause: err})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.saved = raw
	return nil
}
