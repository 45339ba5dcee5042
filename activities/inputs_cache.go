package activities

import (
	"container/list"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// cache keeps values by their digest, the latest used of them, up to a number of bytes. It is safe for concurrent use.
// Its values are shared: whoever takes one out to give it away copies it.
type cache struct {
	most int

	mu    sync.Mutex
	bytes int
	byUse *list.List // of kept, the latest used in front
	at    map[string]*list.Element
}

type kept struct {
	digest string
	value  pregel.Value
}

func newCache(bytes int) *cache {
	return &cache{most: bytes, byUse: list.New(), at: map[string]*list.Element{}}
}

// put keeps a value, and drops those used longest ago to make room. One that is larger than the cache is not kept.
func (c *cache) put(digest string, v pregel.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[digest]; ok {
		c.byUse.MoveToFront(e)
		return
	}
	if len(v) > c.most {
		return
	}
	for c.bytes+len(v) > c.most {
		c.drop(c.byUse.Back())
	}
	c.at[digest] = c.byUse.PushFront(kept{digest, v})
	c.bytes += len(v)
}

func (c *cache) get(digest string) (pregel.Value, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[digest]
	if !ok {
		return nil, false
	}
	c.byUse.MoveToFront(e)
	return e.Value.(kept).value, true
}

func (c *cache) drop(e *list.Element) {
	k := e.Value.(kept)
	c.byUse.Remove(e)
	delete(c.at, k.digest)
	c.bytes -= len(k.value)
}
