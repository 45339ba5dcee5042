package remote

import (
	"maps"
	"slices"
	"sync"

	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/workflows/protocol"
)

// endings are what runs left that had finished, as this client has read it last: a thread's next run begins with it. A run's last event
// never changes. It is safe for concurrent use.
type endings struct {
	mu    sync.Mutex
	known *ttlcache.Cache[string, ending]
}

// ending is what a thread's newest run left. It is shared, and nobody changes it.
type ending struct {
	run  string
	left protocol.GraphResult
}

// of returns what a run of a thread left, if that is known.
func (e *endings) of(thread, run string) (protocol.GraphResult, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil {
		return protocol.GraphResult{}, false
	}
	item := e.known.Get(thread)
	if item == nil || item.Value().run != run {
		return protocol.GraphResult{}, false
	}
	left := item.Value().left
	left.Output, left.Life.Refused = maps.Clone(left.Output), slices.Clone(left.Life.Refused)
	return left, true
}

// keep keeps what a run left, and forgets the one before.
func (e *endings) keep(thread, run string, left protocol.GraphResult) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.known == nil:
		e.known = ttlcache.New(ttlcache.WithTTL[string, ending](outputTime), ttlcache.WithMaxCost(outputBytes,
			func(item ttlcache.CostItem[string, ending]) uint64 { return uint64(len(item.Value.left.State)) }))
	default:
		e.known.DeleteExpired()
	}
	if len(left.State) > outputBytes {
		e.known.Delete(thread)
		return
	}
	e.known.Set(thread, ending{run, left}, ttlcache.DefaultTTL)
}

// forget forgets a thread.
func (e *endings) forget(thread string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known != nil {
		e.known.Delete(thread)
	}
}
