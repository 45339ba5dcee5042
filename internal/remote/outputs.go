package remote

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/graphadapter/pregel"
)

// The bounds of what a client keeps of the threads that it has waited for.
const (
	outputBytes = 64 << 20
	outputTime  = 10 * time.Minute
)

// outputs are the outputs of threads as this client has seen them last: a conversation's next turn brings only what is new in its
// long lists, and only that is decoded. It is safe for concurrent use.
type outputs struct {
	mu    sync.Mutex
	known *ttlcache.Cache[string, output]
}

// output is one thread's. It is shared, and nobody changes its values.
type output struct {
	lists   map[string]*pregel.HadList // the long ones
	decoded *sync.Map                  // see runtime.Runtime.Decoded
}

// of returns what is known of a thread's output.
func (o *outputs) of(thread string) output {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		return output{}
	}
	item := o.known.Get(thread)
	if item == nil {
		return output{}
	}
	return item.Value()
}

// keep keeps the long lists of a thread's output, and forgets the ones before. Those that are held already are not copied.
func (o *outputs) keep(thread string, values map[string]pregel.Value, held map[string]pregel.Held) {
	before := o.of(thread)
	now, size := output{lists: map[string]*pregel.HadList{}, decoded: before.decoded}, 0
	for name, v := range values {
		list, ok := held[name]
		if !ok {
			list = pregel.Hold(v)
		}
		if had := pregel.HadOf(list, before.lists[name]); had != nil {
			now.lists[name] = had
			size += had.Had.Bytes
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.known == nil:
		o.known = ttlcache.New(ttlcache.WithTTL[string, output](outputTime), ttlcache.WithMaxCost(outputBytes,
			func(item ttlcache.CostItem[string, output]) uint64 { return item.Value.size() }))
	default:
		o.known.DeleteExpired()
	}
	if size == 0 || size > outputBytes {
		o.known.Delete(thread)
		return
	}
	if now.decoded == nil {
		now.decoded = &sync.Map{}
	}
	o.known.Set(thread, now, ttlcache.DefaultTTL)
}

func (o output) size() (bytes uint64) {
	for _, had := range o.lists {
		bytes += uint64(had.Had.Bytes)
	}
	return bytes
}

// forget forgets a thread.
func (o *outputs) forget(thread string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known != nil {
		o.known.Delete(thread)
	}
}

// Decoded implements runtime.Runtime.
func (c *Threads) Decoded(thread string) *sync.Map { return c.outputs.of(thread).decoded }
