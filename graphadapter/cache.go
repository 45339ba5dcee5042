package graphadapter

import (
	"context"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// CachePolicy says that a node's results may be reused for equal inputs (LangGraph's CachePolicy, section 8 of the
// semantics). Only successes are kept: a failure, a question and a drained attempt never are.
type CachePolicy struct {
	// TTL is how long a result is kept; 0 means as long as the cache keeps it.
	TTL time.Duration
	// Key returns what of the input decides about the result; nil means all of it, as canonical JSON.
	Key func(Input) (string, error)
}

// Cache keeps results of nodes. It may forget at any time, and is shared by all runs that use it. Implementations are
// safe for concurrent use; an error of theirs is logged and costs a run of the node, no more.
type Cache interface {
	// Get returns what was stored under the key, nil when there is nothing (any more).
	Get(ctx context.Context, key CacheKey) (pregel.Value, error)
	// Set stores a value for ttl; 0 means without an end.
	Set(ctx context.Context, key CacheKey, value pregel.Value, ttl time.Duration) error
	// Clear forgets everything of a node, or of a whole graph when node is "".
	Clear(ctx context.Context, graph, node string) error
}

// CacheKey names one result: of that node of that graph, for the input with that digest.
type CacheKey struct{ Graph, Node, Input string }
