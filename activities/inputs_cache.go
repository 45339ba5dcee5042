package activities

import (
	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/graphadapter/pregel"
)

// cache keeps values by their digest, the latest used of them, up to a number of bytes. It is safe for concurrent use.
// Its values are shared: whoever takes one out to give it away copies it.
type cache struct {
	most   int
	values *ttlcache.Cache[string, pregel.Value]
}

func newCache(bytes int) *cache {
	return &cache{most: bytes, values: ttlcache.New(ttlcache.WithMaxCost(uint64(max(bytes, 1)),
		func(item ttlcache.CostItem[string, pregel.Value]) uint64 { return uint64(len(item.Value)) }))}
}

// put keeps a value, and drops those used longest ago to make room. One that is larger than the cache is not kept.
func (c *cache) put(digest string, v pregel.Value) {
	if len(v) <= c.most && c.values.Get(digest) == nil {
		c.values.Set(digest, v, ttlcache.NoTTL)
	}
}

func (c *cache) get(digest string) (pregel.Value, bool) {
	item := c.values.Get(digest)
	if item == nil {
		return nil, false
	}
	return item.Value(), true
}
