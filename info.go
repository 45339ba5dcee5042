package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/message"
)

// ErrOutsideNode is returned by [Task], [Effect.Call], [Interrupt] and [Emit] when their context is not that of a
// running node.
var ErrOutsideNode = graphadapter.ErrOutsideNode

// Permanent marks an error as final: no retry policy repeats the attempt. It returns nil for nil. An error type says
// so of itself with a method Permanent() bool.
func Permanent(err error) error { return graphadapter.Permanent(err) }

// TaskInfo says which task a node runs for.
type TaskInfo struct {
	// Graph is the graph's name, inside a subgraph the subgraph's.
	Graph, Node, Thread string
	// Step is the superstep; the first nodes of a thread run at 1.
	Step int
	// Attempt counts the attempts of this task, from 1.
	Attempt int
	// StepsLeft counts the supersteps that may still run after this one before the recursion limit (LangGraph's
	// RemainingSteps), and LastStep says that it is 1: the last superstep after which the run can still finish. A
	// subgraph counts its own.
	StepsLeft int
	LastStep  bool
	// Namespace and Path place the task in its thread: the subgraph it runs in, "" for none, and its place in the
	// superstep, which tells the tasks of several Sends to one node apart.
	Namespace, Path string
	// Requester is on whose behalf the run is, "" when nobody said; see [WithRequester].
	Requester string
}

// Info says which task runs. Outside a node it returns the zero TaskInfo.
func Info(ctx context.Context) TaskInfo {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return TaskInfo{}
	}
	i := t.Info()
	return TaskInfo{
		Graph: i.Graph, Node: i.Node, Thread: i.Thread, Step: i.Step, Attempt: i.Attempt, StepsLeft: i.StepsLeft,
		LastStep: i.LastStep, Namespace: i.Namespace, Path: i.Path, Requester: i.Requester,
	}
}

// RunContext returns the value that the run was given by [WithContext], in a node, a routing function, an effect's
// functions and an error handler, of subgraphs too. It fails with a *[StateError] when the run was given none, or one
// that is not a T, members that T does not have included; no retry policy repeats that.
func RunContext[T any](ctx context.Context) (T, error) {
	var out T
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return out, fmt.Errorf("run context: %w", ErrOutsideNode)
	}
	raw, err := t.RunContext(), error(nil)
	if raw == nil {
		err = errors.New("the run was given none: start it with superstep.WithContext")
	} else {
		err = jsonfit.Explain(jsonfit.DecodeStrict(raw, &out), reflect.TypeFor[T](), raw)
	}
	if err != nil {
		var zero T
		return zero, graphadapter.Permanent(&StateError{Graph: t.Info().Graph, Node: t.Info().Node, Context: true,
			Type: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err})
	}
	return out, nil
}

// Drain asks the run to stop before its next superstep, for that reason, of at most 1 KiB: what runs now ends and is
// kept, this node included. The run then stands still, and goes on when the thread is invoked without input. When
// nothing was left to run it finishes as if nothing had been asked. Outside a node it does nothing.
func Drain(ctx context.Context, reason string) {
	if t, ok := taskrun.TaskFrom(ctx); ok {
		t.Drain(reason)
	}
}

// Heartbeat says that the node makes progress, which restarts the idle time of [WithTimeout]. Emitting a value and
// finishing a Task or an Effect say so too. Outside a node it does nothing.
func Heartbeat(ctx context.Context) {
	if t, ok := taskrun.TaskFrom(ctx); ok {
		t.Beat()
	}
}

// Emit puts a value, which encodes as JSON, on the run's custom stream: at once for those who listen, and with the
// node's result for those who read later. A node that runs again emits again. One attempt may emit 10,000 values, of
// 256 KiB each and 1 MiB together; beyond that Emit fails and the value is dropped.
func Emit(ctx context.Context, v any) error {
	return emit(ctx, v, (*taskrun.TaskRun).Emit)
}

// EmitMessage is Emit for the messages stream: m is a message, or a piece of one that has the id of the whole. A
// message with that id that the node then writes is not streamed again, so emit all of it, or only others. The bounds
// are those of Emit, and both count together.
func EmitMessage(ctx context.Context, m message.Message) error {
	return emit(ctx, m, (*taskrun.TaskRun).EmitMessage)
}

func emit(ctx context.Context, v any, to func(*taskrun.TaskRun, json.RawMessage) error) error {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return fmt.Errorf("emit: %w", ErrOutsideNode)
	}
	raw, err := jsonfit.Encode(v)
	if err != nil {
		return graphadapter.Permanent(fmt.Errorf("%semit: a value of type %v does not encode as JSON: %w",
			place(t.Info().Graph, t.Info().Node), reflect.TypeOf(v), err))
	}
	return to(t, raw)
}
