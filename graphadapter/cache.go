package graphadapter

import (
	"context"
	"fmt"
	"time"

	"cmp"

	"github.com/jellydator/ttlcache/v3"
	"superstep.dev/graphadapter/pregel"
)

// CachePolicy says that a node's results may be reused for equal inputs (LangGraph's CachePolicy, section 8 of the
// semantics). A result is what the node wrote and where it, and its branches, went.
//
// Kept is only the success of a node that depends on nothing but its input. Never kept is a failure, a question or what
// came after an answer, a command to the parent graph, an attempt that asked for a drain, and a node that called an
// effect: to reuse that result would claim a write that was not made. Nor is the result of a node that has read what is not its input:
// for whom or in which thread it runs, the store, a value of its context.Context.
type CachePolicy struct {
	// TTL is how long a result is kept; 0 means as long as the cache keeps it.
	TTL time.Duration
	// Key returns what of the input decides about the result. Nil means everything that the task can read: the state that
	// node and branches read or the Send's argument, and the run's context value, as canonical JSON (RFC 8785). With a Key the result of a
	// node that has read the run's context value is not kept, and the rest of the state must not matter to the branches either, because their routes are kept too.
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

// The bounds of a [MemoryCache] that names none.
const (
	// DefaultCacheEntries is the greatest number of results.
	DefaultCacheEntries = 10_000
	// DefaultCacheBytes is the greatest size of all results with their keys, in bytes.
	DefaultCacheBytes = 64 << 20
)

// MemoryCache is a [Cache] in this process. When it is full the results that were not asked for the longest go; one that
// is larger than the whole cache is not kept.
type MemoryCache struct {
	items *ttlcache.Cache[CacheKey, pregel.Value]
	most  uint64
}

// NewMemoryCache returns an empty cache of at most that many results and bytes; 0 means [DefaultCacheEntries] and
// [DefaultCacheBytes]. It holds no goroutine.
func NewMemoryCache(entries, bytes int) *MemoryCache {
	most := uint64(max(cmp.Or(bytes, DefaultCacheBytes), 0))
	return &MemoryCache{most: most, items: ttlcache.New(
		ttlcache.WithDisableTouchOnHit[CacheKey, pregel.Value](),
		ttlcache.WithCapacity[CacheKey, pregel.Value](uint64(max(cmp.Or(entries, DefaultCacheEntries), 1))),
		ttlcache.WithMaxCost(max(most, 1), func(item ttlcache.CostItem[CacheKey, pregel.Value]) uint64 {
			return cacheCost(item.Key, item.Value)
		}),
	)}
}

func cacheCost(key CacheKey, value pregel.Value) uint64 {
	return uint64(len(key.Graph) + len(key.Node) + len(key.Input) + len(value))
}

// Get implements [Cache].
func (c *MemoryCache) Get(_ context.Context, key CacheKey) (pregel.Value, error) {
	item := c.items.Get(key)
	if item == nil {
		return nil, nil
	}
	return item.Value(), nil
}

// Set implements [Cache]. What has run out of time makes room first.
func (c *MemoryCache) Set(_ context.Context, key CacheKey, value pregel.Value, ttl time.Duration) error {
	c.items.DeleteExpired()
	if cacheCost(key, value) > c.most {
		c.items.Delete(key) // what is there is older
		return nil
	}
	if ttl <= 0 {
		ttl = ttlcache.NoTTL
	}
	c.items.Set(key, value, ttl)
	return nil
}

// Clear implements [Cache].
func (c *MemoryCache) Clear(_ context.Context, graph, node string) error {
	for _, key := range c.items.Keys() {
		if key.Graph == graph && (node == "" || key.Node == node) {
			c.items.Delete(key)
		}
	}
	return nil
}

// Len returns the number of results that are kept.
func (c *MemoryCache) Len() int { return c.items.Len() }
