package superstep

import (
	"context"

	"superstep.dev/graphadapter"
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
	// StepsLeft counts the supersteps that may still run after this one before the recursion limit.
	StepsLeft int
	// Namespace and Path place the task in its thread: the subgraph it runs in, "" for none, and its place in the
	// superstep, which tells the tasks of several Sends to one node apart.
	Namespace, Path string
}

// Info says which task runs. Outside a node it returns the zero TaskInfo.
func Info(ctx context.Context) TaskInfo {
	t, ok := graphadapter.TaskFrom(ctx)
	if !ok {
		return TaskInfo{}
	}
	i := t.Info()
	return TaskInfo{
		Graph: i.Graph, Node: i.Node, Thread: i.Thread, Step: i.Step, Attempt: i.Attempt, StepsLeft: i.StepsLeft,
		Namespace: i.Namespace, Path: i.Path,
	}
}

// Heartbeat says that the node makes progress, which restarts the idle time of [WithTimeout]. Emitting a value and
// finishing a Task or an Effect say so too. Outside a node it does nothing.
func Heartbeat(ctx context.Context) {
	if t, ok := graphadapter.TaskFrom(ctx); ok {
		t.Beat()
	}
}
