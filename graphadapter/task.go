package graphadapter

import (
	"context"
	"errors"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// ErrInterrupted is what [TaskRun.Ask] returns while there is no answer. A node passes it on; the task then waits,
// even if the node swallows it.
var ErrInterrupted = errors.New("superstep: the task waits for an answer")

// ErrOutsideNode is returned by everything that needs a running task when the context is not a node's.
var ErrOutsideNode = errors.New("superstep: called outside a node: pass on the context that the node was given")

// Info says which task runs.
type Info struct {
	Graph, Node, Thread string
	// Namespace, Step, Path and Branch place the task in its thread; see pregel.Task.
	Namespace, Path, Branch string
	Step                    int
	// Attempt counts the executions of this task that the node's retry policy sees, from 1.
	Attempt int
	// StepsLeft counts the supersteps that may still run in this run, this one included.
	StepsLeft int
	// Suspect says that an earlier execution of this task may have acted outside without a trace: effects look up
	// before they call.
	Suspect bool
}

// Journal is where a running task keeps what must survive it: the ledger of its memoised calls and effects.
type Journal interface {
	// Entry returns the entry of that key.
	Entry(key string) (ledger.Entry, bool)
	// Record stores an entry, replacing the one of the same key. It returns when the entry is durable: nil means it
	// will be seen by every later execution of the task. [ErrFenced] means another execution owns the task: stop,
	// start no new call.
	Record(ctx context.Context, e ledger.Entry) error
}

// ErrFenced says that this execution of the task no longer counts: another one took over, or the run is over.
var ErrFenced = errors.New("superstep: another execution owns this task: stop")

// TaskRun is one execution of one task, as its node sees it through the context.
type TaskRun struct {
	info    Info
	journal Journal
	answers []pregel.Answer
	asked   []pregel.Question
	custom  []pregel.Value
	ordinal map[string]int
	emit    func(pregel.Value)
	beat    func()
	state   taskLock
}

type taskKey struct{}

// TaskFrom returns the task that ctx belongs to.
func TaskFrom(ctx context.Context) (*TaskRun, bool) {
	t, ok := ctx.Value(taskKey{}).(*TaskRun)
	return t, ok
}
