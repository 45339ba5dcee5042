package remote

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/workflows/protocol"
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

// endings are what runs left that had finished, as this client has read it last: a thread's next run begins with it. A run's last event
// never changes.
type endings struct{ remembered[ending] }

// ending is what a thread's newest run left.
type ending struct {
	run  string
	left protocol.GraphResult
}

func (e ending) size() uint64 { return uint64(len(e.left.State)) }

// of returns what a run of a thread left, if that is known.
func (e *endings) of(thread, run string) (protocol.GraphResult, bool) {
	known, ok := e.remembered.of(thread)
	if !ok || known.run != run {
		return protocol.GraphResult{}, false
	}
	left := known.left
	left.Output, left.Life.Refused = maps.Clone(left.Output), slices.Clone(left.Life.Refused)
	return left, true
}

// lately remembers when something was last known of the latest names. It is safe for concurrent use.
type lately struct {
	mu sync.Mutex
	at map[string]time.Time
}

// mostNames bounds what a [lately] remembers: with more, the older half is forgotten.
const mostNames = 1000

// rememberedFor is how long a client remembers of a thread that it saw its run end, or rest: the one is not given a turn, and the other is,
// without a start beside it. To be wrong costs a call.
const rememberedFor = time.Hour

// note notes a name, or that it is to be forgotten.
func (l *lately) note(name string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !is {
		delete(l.at, name)
		return
	}
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	if len(l.at) >= mostNames {
		for _, old := range l.latestFirst()[mostNames/2:] {
			delete(l.at, old)
		}
	}
	l.at[name] = time.Now()
}

// latestFirst are all names; mu is held.
func (l *lately) latestFirst() []string {
	return slices.SortedFunc(maps.Keys(l.at), func(a, b string) int { return l.at[b].Compare(l.at[a]) })
}

// latest returns the names that were noted within that time, the latest ones.
func (l *lately) latest(within time.Duration, most int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.latestFirst()
	old := slices.IndexFunc(names, func(name string) bool { return time.Since(l.at[name]) >= within })
	if old >= 0 {
		names = names[:old]
	}
	return names[:min(most, len(names))]
}

// within reports whether a name was noted within that time.
func (l *lately) within(name string, d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, noted := l.at[name]
	return noted && time.Since(at) < d
}
