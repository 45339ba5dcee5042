package remote

import (
	"sync"

	"github.com/jellydator/ttlcache/v3"
)

// remembered is what a client knows of threads: one value each, for outputTime, outputBytes of all together. Values are shared, and nobody
// changes them. It is safe for concurrent use.
type remembered[T interface{ size() uint64 }] struct {
	mu    sync.Mutex
	known *ttlcache.Cache[string, T]
}

// of returns what is known of a thread.
func (r *remembered[T]) of(thread string) (of T, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		return of, false
	}
	item := r.known.Get(thread)
	if item == nil {
		return of, false
	}
	return item.Value(), true
}

// keep puts a value in the place of the one before. One without a size, or with one above the bound, is not kept.
func (r *remembered[T]) keep(thread string, of T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.known == nil:
		r.known = ttlcache.New(ttlcache.WithTTL[string, T](outputTime),
			ttlcache.WithMaxCost(outputBytes, func(item ttlcache.CostItem[string, T]) uint64 { return item.Value.size() }))
	default:
		r.known.DeleteExpired()
	}
	if size := of.size(); size == 0 || size > outputBytes {
		r.known.Delete(thread)
		return
	}
	r.known.Set(thread, of, ttlcache.DefaultTTL)
}

// forget forgets a thread.
func (r *remembered[T]) forget(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known != nil {
		r.known.Delete(thread)
	}
}
