package graphadapter

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// State is what a function of a graph reads: the channels that have a value, by name. It is shared between tasks and
// must not be changed.
type State map[string]pregel.Held

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
	// MaxRetryAfter bounds the wait that an error asks for ([WaitOf]), which takes the place of the policy's own; 1 h. Negative takes no
	// error's word.
	MaxRetryAfter time.Duration
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
	// Schemas says what the graph's values look like, without those nested in it; nil when that is not known.
	Schemas func() Schemas
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

	printOnce sync.Once
	print     string
	printErr  error
}

// NameOf returns the name of the graph that a task is of; the root's when there is no such subgraph.
func (g *Graph) NameOf(task *pregel.Task) string {
	if sub, ok := g.Subgraph(task.Graph); ok {
		return sub.Spec.Name
	}
	return g.Spec.Name
}

// Has reports whether spec is the graph's own: what was made of that serves for a run of spec, too.
func (g *Graph) Has(spec *pregel.Spec) bool { return reflect.DeepEqual(g.Spec, spec) }

// Fingerprint is [Fingerprint] of the graph's Spec. It is made once: every run asks for it.
func (g *Graph) Fingerprint() (string, error) {
	g.printOnce.Do(func() { g.print, g.printErr = Fingerprint(g.Spec) })
	return g.print, g.printErr
}

// Program returns the graph's compiled Spec. It is compiled once; the error is that of pregel.Compile.
func (g *Graph) Program() (*pregel.Program, error) {
	g.once.Do(func() { g.program, g.programErr = pregel.Compile(g.Spec, g.AllReducers()) })
	return g.program, g.programErr
}

// AllReducers returns the custom reducers of the graph and its subgraphs by name. A name stands for one behaviour
// everywhere, so where two graphs register the same name either one will do.
func (g *Graph) AllReducers() map[string]pregel.Reducer {
	all := map[string]pregel.Reducer{}
	for name, reducer := range g.Reducers {
		all[name] = reducer
	}
	for _, sub := range g.Subgraphs {
		for name, reducer := range sub.AllReducers() {
			all[name] = reducer
		}
	}
	return all
}

// Subgraph returns the graph of a task's path of subgraph names.
func (g *Graph) Subgraph(path []string) (*Graph, bool) {
	for _, name := range path {
		sub, ok := g.Subgraphs[name]
		if !ok {
			return nil, false
		}
		g = sub
	}
	return g, true
}

// ClearCache forgets the results of these nodes of the graph, with those of a subgraph node's whole subgraph; without
// nodes, of all its nodes and subgraphs. A run under way may store results again at once. The error is a [*CacheError].
func (g *Graph) ClearCache(ctx context.Context, nodes ...string) error {
	if len(nodes) == 0 {
		return g.clear(ctx, g.ResultCache(), g.Spec.Name)
	}
	for _, name := range nodes {
		spec, ok := g.NodeSpec(name)
		if !ok {
			return &CacheError{Graph: g.Spec.Name, Node: name, Op: "clear", Err: fmt.Errorf("the graph has no such node")}
		}
		if err := g.ResultCache().Clear(ctx, g.Spec.Name, name); err != nil {
			return &CacheError{Graph: g.Spec.Name, Node: name, Op: "clear", Err: err}
		}
		if sub, ok := g.Subgraphs[spec.Subgraph]; ok {
			if err := sub.clear(ctx, g.ResultCache(), strings.Join([]string{g.Spec.Name, spec.Subgraph}, "/")); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear forgets a graph, known by that path, and all within it.
func (g *Graph) clear(ctx context.Context, cache Cache, path string) error {
	if err := cache.Clear(ctx, path, ""); err != nil {
		return &CacheError{Graph: path, Op: "clear", Err: err}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Subgraphs)) {
		if err := g.Subgraphs[name].clear(ctx, cache, strings.Join([]string{path, name}, "/")); err != nil {
			return err
		}
	}
	return nil
}

// ResultCache is where the graph, as a root, keeps its nodes' results: in its own cache, else in one of this process that all
// its runs share.
func (g *Graph) ResultCache() Cache {
	if g.Cache != nil {
		return g.Cache
	}
	g.cacheOnce.Do(func() { g.ownCache = NewMemoryCache(0, 0) })
	return g.ownCache
}
