package graphadapter

import (
	"cmp"
	"context"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/graphadapter/pregel"
)

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
