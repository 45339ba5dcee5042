package activities

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/internal/jsonfit"
)

// The bounds of what a worker keeps decoded.
const (
	// decodedBytes bounds it by what it has as text; decoded it takes two or three times as much.
	decodedBytes = 64 << 20
	// decodedTime is how long a thread's state is kept decoded that nobody reads. It is dropped after twice that at the latest.
	decodedTime = 5 * time.Minute
)

// decoded is what the nodes of this worker have decoded of the states of the threads that it has served last: a conversation's
// next turn decodes only what is new in it, in the next run too. See [taskrun.TaskRun.Decoded]. It is safe for concurrent use.
type decoded struct {
	mu    sync.Mutex
	of    *ttlcache.Cache[string, decodedThread]
	drops bool // a timer drops what has expired
}

type decodedThread struct {
	values *sync.Map
	bytes  uint64
}

// ofThread returns what is decoded of the state of a thread.
func (d *decoded) ofThread(thread string) *sync.Map {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of != nil {
		if known := d.of.Get(thread); known != nil {
			return known.Value().values
		}
	}
	return &sync.Map{}
}

// keep keeps what is decoded of the state of a thread, once the tasks are over that decode it. What alone is above the bound is not kept.
func (d *decoded) keep(thread string, values *sync.Map) {
	bytes := jsonfit.KeptBytes(values)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = ttlcache.New(ttlcache.WithTTL[string, decodedThread](decodedTime), ttlcache.WithMaxCost(decodedBytes,
			func(item ttlcache.CostItem[string, decodedThread]) uint64 { return item.Value.bytes }))
	}
	if bytes == 0 || bytes > decodedBytes {
		d.of.Delete(thread)
		return
	}
	d.of.Set(thread, decodedThread{values, bytes}, ttlcache.DefaultTTL)
	if !d.drops {
		d.drops = true
		time.AfterFunc(decodedTime, d.drop)
	}
}

// drop drops what has expired, every now and then while there is something: the worker may have nothing to do any more, or have stopped.
func (d *decoded) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of.DeleteExpired()
	if d.drops = d.of.Len() > 0; d.drops {
		time.AfterFunc(decodedTime, d.drop)
	}
}
