package activities

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"go.temporal.io/sdk/activity"
)

// The bounds of what a worker keeps decoded.
const (
	// decodedBytes bounds it by what the threads' states have as text; decoded they take two or three times as much.
	decodedBytes = 64 << 20
	// decodedTime is how long a thread's state is kept decoded that nobody reads.
	decodedTime = 5 * time.Minute
)

// decoded is what the nodes of this worker have decoded of the states of the threads that it has served last: a conversation's
// next turn decodes only what is new in it, in the next run too. See [taskrun.TaskRun.Decoded]. It is safe for concurrent use.
type decoded struct {
	mu sync.Mutex
	of *ttlcache.Cache[string, decodedThread]
}

type decodedThread struct {
	values *sync.Map
	bytes  int
}

// ofThread returns what is decoded of the state of the activity's thread, which has so many bytes now.
func (d *decoded) ofThread(info activity.Info, bytes int) *sync.Map {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = ttlcache.New(ttlcache.WithTTL[string, decodedThread](decodedTime), ttlcache.WithMaxCost(decodedBytes,
			func(item ttlcache.CostItem[string, decodedThread]) uint64 { return uint64(item.Value.bytes) }))
	}
	thread := decodedThread{values: &sync.Map{}, bytes: bytes}
	if before := d.of.Get(info.WorkflowExecution.ID); before != nil {
		thread.values = before.Value().values
	}
	d.of.DeleteExpired()
	d.of.Set(info.WorkflowExecution.ID, thread, ttlcache.DefaultTTL)
	return thread.values
}
