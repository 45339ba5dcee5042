package graphadapter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// CachePolicy says that a node's results may be reused for equal inputs (LangGraph's CachePolicy, section 8 of the
// semantics). A result is what the node wrote and where it, and its branches, went.
//
// Kept is only the success of a node that depends on nothing but its input. Never kept is a failure, a question or what
// came after an answer, a command to the parent graph, an attempt that asked for a drain, and a node that called an
// effect: to reuse that result would claim a write that was not made.
type CachePolicy struct {
	// TTL is how long a result is kept; 0 means as long as the cache keeps it.
	TTL time.Duration
	// Key returns what of the input decides about the result. Nil means everything that the task can read: the state that
	// node and branches read or the Send's argument, and the run's context value, as canonical JSON (RFC 8785). With a Key
	// the rest of the state must not matter to the branches either, because their routes are kept too.
	Key func(Input) (string, error)
}

// Cache keeps results of nodes. It may forget at any time, and is shared by all runs that use it. Implementations are
// safe for concurrent use and heed their context; an error of theirs is logged and costs a run of the node, no more.
type Cache interface {
	// Get returns what was stored under the key, nil when there is nothing (any more).
	Get(ctx context.Context, key CacheKey) (pregel.Value, error)
	// Set stores a value for ttl; 0 means without an end.
	Set(ctx context.Context, key CacheKey, value pregel.Value, ttl time.Duration) error
	// Clear forgets everything of a node, or of a whole graph when node is "".
	Clear(ctx context.Context, graph, node string) error
}

// CacheKey names one result: of that node of that graph, for the input with that digest, in hex. Graph is the root
// graph's name and, each behind a slash, the subgraphs' that lead to the node's. No version of the graph is part of it:
// who changes what a node does clears its results, or gives it another name or Key.
type CacheKey struct{ Graph, Node, Input string }

// CacheError says that a node's results cannot be kept or reused. The node runs all the same.
type CacheError struct {
	Graph, Node string
	// Op is what was being done: "key", "get", "read", "set", "clear".
	Op  string
	Err error
}

func (e *CacheError) Error() string {
	return fmt.Sprintf("cache of node %q of graph %q: %s: %v", e.Node, e.Graph, e.Op, e.Err)
}

// Unwrap returns what went wrong.
func (e *CacheError) Unwrap() error { return e.Err }

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
