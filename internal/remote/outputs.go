package remote

import (
	"sync"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// The bounds of what a client keeps of the threads that it has waited for.
const (
	outputBytes = 64 << 20
	outputTime  = 10 * time.Minute
)

// outputs are the outputs of threads as this client has seen them last: a conversation's next turn brings only what is new in its
// long lists, and only that is decoded.
type outputs struct{ remembered[output] }

// output is one thread's. It is shared, and nobody changes its values.
type output struct {
	lists   map[string]*pregel.HadList // the long ones
	decoded *sync.Map                  // see runtime.Runtime.Decoded
	bytes   uint64                     // of the values that decoded keeps
}

// keep keeps the long lists of a thread's output, and forgets the ones before. Who reads the output keeps decoded what else is large in it.
func (o *outputs) keep(thread string, values map[string]pregel.Held) {
	before, _ := o.of(thread)
	now := output{lists: map[string]*pregel.HadList{}, decoded: before.decoded}
	for name, value := range values {
		if had := pregel.HadOf(value, before.lists[name]); had != nil {
			now.lists[name] = had
		}
		if value.Len() >= jsonfit.MinKept {
			now.bytes += uint64(value.Len())
		}
	}
	if now.decoded == nil {
		now.decoded = &sync.Map{}
	}
	o.remembered.keep(thread, now)
}

// size is 0 for an output without long lists: nothing of it is kept.
func (o output) size() uint64 {
	if len(o.lists) == 0 {
		return 0
	}
	return o.bytes
}

// Decoded implements runtime.Runtime.
func (c *Threads) Decoded(thread string) *sync.Map {
	known, _ := c.outputs.of(thread)
	return known.decoded
}
