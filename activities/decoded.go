package activities

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"go.temporal.io/sdk/activity"
)

// The bounds of what a worker keeps decoded.
const (
	// decodedBytes bounds it by what the runs' states have as text; decoded they take two or three times as much.
	decodedBytes = 64 << 20
	// decodedTime is how long a run's state is kept decoded that nobody reads.
	decodedTime = 5 * time.Minute
)

// decoded is what the nodes of this worker have decoded of the states of the runs that it has served last: a conversation's
// next turn decodes only what is new in it. See [taskrun.TaskRun.Decoded]. It is safe for concurrent use.
type decoded struct {
	mu sync.Mutex
	of *ttlcache.Cache[string, decodedRun]
}

type decodedRun struct {
	values *sync.Map
	bytes  int
}

// ofRun returns what is decoded of the state of the activity's run, which has so many bytes now.
func (d *decoded) ofRun(info activity.Info, bytes int) *sync.Map {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = ttlcache.New(ttlcache.WithTTL[string, decodedRun](decodedTime), ttlcache.WithMaxCost(decodedBytes,
			func(item ttlcache.CostItem[string, decodedRun]) uint64 { return uint64(item.Value.bytes) }))
	}
	run := decodedRun{values: &sync.Map{}, bytes: bytes}
	if before := d.of.Get(info.WorkflowExecution.RunID); before != nil {
		run.values = before.Value().values
	}
	d.of.DeleteExpired()
	d.of.Set(info.WorkflowExecution.RunID, run, ttlcache.DefaultTTL)
	return run.values
}
