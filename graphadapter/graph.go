package graphadapter

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// State is what a function of a graph reads: the channels that have a value, by name. It is shared between tasks and
// must not be changed.
type State map[string]pregel.Value

// NodeFunc is a node: it reads its input and returns what it writes and where it goes. input.Arg is set when the task
// was made by a Send; then it is the node's input instead of the state.
//
// It may be called again for the same task: after a crash, a retry or an answer. What it does to the outside belongs
// into the task's journal (see [TaskFrom]). A returned error fails the attempt; the node's retry policy decides on.
//
// Its goroutine may run other nodes after it: what it does to that, by runtime.LockOSThread for one, it undoes.
type NodeFunc func(ctx context.Context, input Input) (pregel.Command, error)

// Input is what a node function is called with.
type Input struct {
	State State
	// Arg is the Send's argument, nil for a task triggered by edges.
	Arg pregel.Value
}

// BranchFunc is a conditional edge. state has the writes of the branch's own task applied, and no sibling's.
type BranchFunc func(ctx context.Context, state State) ([]pregel.Target, error)

// RetryPolicy says how often a failed attempt of a node is repeated. The zero value of a field means its default.
type RetryPolicy struct {
	// InitialInterval is the wait before the second attempt; 0.5 s. Negative means none.
	InitialInterval time.Duration
	// BackoffFactor multiplies the wait after each attempt; 2.
	BackoffFactor float64
	// MaxInterval bounds the wait; 128 s.
	MaxInterval time.Duration
	// MaxAttempts counts all attempts, the first included; 3.
	MaxAttempts int
	// NoJitter leaves out the random 0 to 1 s added to each wait.
	NoJitter bool
	// RetryOn decides by the error; nil retries everything except [Permanent] errors.
	RetryOn func(error) bool
}

// Node is a node's functions and policies: what a Spec cannot hold.
type Node struct {
	Run      NodeFunc
	Branches []BranchFunc
	// Retry are tried in order, the first whose RetryOn matches decides; none means a failure is final.
	Retry []RetryPolicy
	// RunTimeout bounds one attempt; 0 means no bound.
	RunTimeout time.Duration
	// IdleTimeout bounds the time an attempt goes without progress (a write, an emitted value, a finished Task or
	// Effect, a heartbeat); 0 means no bound.
	IdleTimeout time.Duration
	// Cache keeps what the node returned for an input; nil never does. It is not for subgraph nodes, which have no function.
	Cache *CachePolicy
	// Kept and Reused change what a cache stores of the node's command and what is made of it for another task, by what
	// must differ from task to task. Nil changes nothing. The context is the task's.
	Kept, Reused func(context.Context, pregel.Command) (pregel.Command, error)
	// Handle is the function of an error handler (pregel.NodeSpec.Handler), which has no Run.
	Handle HandlerFunc
}

// HandlerFunc is an error handler: it takes over for a task that has failed for good, with that task's input.
type HandlerFunc func(ctx context.Context, input Input, failure *pregel.NodeError) (pregel.Command, error)

// Graph is a Spec and the Go functions it names. Build it once, then share it: it is read-only.
type Graph struct {
	Spec *pregel.Spec
	// Nodes holds every node by name, pregel.Start among them when the entry has branches.
	Nodes map[string]Node
	// Reducers holds the custom reducers by their versioned name; the engine's own need no entry.
	Reducers map[string]pregel.Reducer
	// Subgraphs holds the graphs that Spec.Subgraphs describes, by the same names.
	Subgraphs map[string]*Graph
	// CheckInput refuses input that does not fit the graph's input type, with an error that names the field. Nil
	// accepts any JSON object.
	CheckInput func(pregel.Value) error
	// CheckUpdate refuses writes to the state from outside that do not fit its fields, with an error that names the field.
	// Nil accepts any JSON.
	CheckUpdate func([]pregel.Write) error
	// Cache is where nodes with a CachePolicy keep their results, those of subgraphs included; nil means a [MemoryCache]
	// of this Graph value's own, shared by its runs in this process.
	Cache Cache
	// Effects are the declared writes by name, for reconciliation after their node is gone.
	Effects map[string]Effect

	cacheOnce sync.Once
	ownCache  Cache

	once       sync.Once
	program    *pregel.Program
	programErr error
}

// NameOf returns the name of the graph that a task is of; the root's when there is no such subgraph.
func (g *Graph) NameOf(task *pregel.Task) string {
	if sub, ok := g.Subgraph(task.Graph); ok {
		return sub.Spec.Name
	}
	return g.Spec.Name
}
