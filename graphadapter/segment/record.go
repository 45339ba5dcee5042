package segment

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// segmentRecord are deliveries on their way into heartbeats: blocks, of which only the last is compressed again as it grows.
// It is safe for concurrent use.
//
// A delivery of the only task that was handed out goes without the task's key and digest, which is most of what an everyday
// one would take: whoever delivers the ones before knows the task. The digest of the last of those in a block is the block's
// digest trailer. It sums up the others, as they are of the root graph.
type segmentRecord struct {
	most int // bytes that a heartbeat may carry

	mu      sync.Mutex
	closed  []byte // the blocks that are full
	last    []byte // the block behind them, as it was packed
	frames  []byte // of the last block, as they are
	trailer string // of the last block
	added   int    // deliveries
	held    int    // of them, in closed and last
	full    bool   // the others do not fit a heartbeat
	carried int    // bytes, by all heartbeats
}

// maxCarried bounds what the heartbeats of a segment carry together: each has the whole record, and from here on another
// segment, which begins with an empty one, costs less than they do.
const maxCarried = 2 << 20

// blockBytes is how many bytes of frames make a block full: each heartbeat compresses no more than that again.
const blockBytes = 8 << 10

func newSegmentRecord(most int) *segmentRecord { return &segmentRecord{most: most} }

// add takes in one delivery, and its frame. only says that its task was the root graph's, and the only one that was handed
// out. One with a ledger keeps its key: it is read by itself, to tell what was done outside.
func (r *segmentRecord) add(d *Delivery, frame []byte, only bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return
	}
	r.added++
	if only && d.Outcome.Ledger == nil && d.Digest != "" {
		r.trailer = d.Digest
		r.frames = append(r.frames, 0, 0) // no key, no digest
		for range 2 {
			size, prefix := binary.Uvarint(frame)
			frame = frame[prefix+int(size):]
		}
	}
	r.frames = append(r.frames, frame...)
}

// carry returns what the next heartbeat carries, and how many deliveries: all, or as many of the first ones as fit.
func (r *segmentRecord) carry() (record []byte, deliveries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pack()
	record = append(append(make([]byte, 0, len(r.closed)+len(r.last)), r.closed...), r.last...)
	r.carried += len(record)
	return record, r.held
}

// fits finds out whether the next heartbeat carries all deliveries.
func (r *segmentRecord) fits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pack()
	return !r.full
}

// isSpent reports whether another segment does better: a heartbeat does not carry all deliveries, or they have carried much.
func (r *segmentRecord) isSpent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full || r.carried > maxCarried
}

// pack makes what was added since part of the last block.
func (r *segmentRecord) pack() {
	if r.full || r.held == r.added {
		return
	}
	last := appendBlock(nil, r.trailer, r.frames)
	if r.most > 0 && len(r.closed)+len(last) > r.most {
		r.full = true
		return
	}
	r.last, r.held = last, r.added
	if len(r.frames) >= blockBytes {
		r.closed = append(r.closed, last...)
		r.last, r.frames, r.trailer = nil, r.frames[:0], ""
	}
}

// close ends the record: heartbeats that come late carry what was packed.
func (r *segmentRecord) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full, r.frames = true, nil
}

// DecodeRecord reads the deliveries of a heartbeat. Those that go without their tasks have an empty Key, and all but the last
// of them in each block an empty Digest, until [Redeliver] has found their tasks. The error says that it is no record, or one
// that was cut off or changed: one that was cut off between two blocks is a shorter record.
func DecodeRecord(record []byte) ([]Delivery, error) {
	return decodeBlocks(record, mostAtOnce, maxRecordText)
}

// StoredActivity is the type of the local activity that reads what a run's activities have stored with their heartbeats: a
// [StoredRequest] gives a [StoredReply]. No node's activity has such a name.
const StoredActivity = "superstep.stored"

// StoredRequest asks for what the heartbeats of a run's tasks, or of its segment, have stored.
type StoredRequest struct {
	Thread      string   `json:"thread"`
	Run         string   `json:"run"`
	ActivityIDs []string `json:"activity_ids"`
}

// StoredReply is what the server has of them, by the ids of their activities.
type StoredReply struct {
	// Stored has the activities that are under way: not those that have ended meanwhile, whose own word tells.
	Stored map[string]Stored `json:"stored,omitempty"`
	// Rest are the ids of those that did not fit, to be asked for again.
	Rest []string `json:"rest,omitempty"`
}

// Stored is what the server has of one activity.
type Stored struct {
	// Begun counts the executions that a worker began.
	Begun int32 `json:"begun,omitempty"`
	// Known is false when the server has nothing else: no heartbeat came.
	Known    bool                  `json:"known,omitempty"`
	Progress graphadapter.Progress `json:"progress,omitzero"`
	Record   []byte                `json:"record,omitempty"` // of a segment, see DecodeRecord
}

// Lost reports whether an execution was lost with its worker.
func (s *Stored) Lost() bool { return s.Progress.Lost || s.Begun > s.Progress.Accounted }

// maxStored bounds what a [StoredReply] brings, in bytes: a run keeps it as one event, of at most 2 MiB.
const maxStored = 1 << 20

// Page sorts what was found of the activities that the request asks for, of those sizes in bytes, into a reply and its Rest.
// One activity fits in any case.
func (r *StoredRequest) Page(found map[string]Stored, sizes map[string]int) StoredReply {
	reply := StoredReply{Stored: map[string]Stored{}}
	size := 0
	for _, id := range r.ActivityIDs {
		one, ok := found[id]
		if !ok {
			continue
		}
		if size += sizes[id]; size > maxStored && len(reply.Stored) > 0 {
			reply.Rest = append(reply.Rest, id)
			continue
		}
		reply.Stored[id] = one
	}
	return reply
}

// IsPinned reports whether a task is for the workers of a task queue of its own: then the tasks are for no segment.
func IsPinned(program *pregel.Program, tasks []*pregel.Task) bool {
	return slices.ContainsFunc(tasks, func(t *pregel.Task) bool { return program.TaskQueue(t) != "" })
}

// HandOver suspends a loop, by its method of that name, for a segment to go on with, whose tasks in the queue were handed out
// and have not begun. ready are those tasks as the loop has handed them out again: [TakeIn] needs them.
func HandOver[S any](loop *pregel.Loop, queue []*pregel.Task, suspend func(*pregel.Loop) (S, error)) (suspended S, ready []*pregel.Task, err error) {
	loop.PutBack(queue...)
	suspended, err = suspend(loop)
	return suspended, loop.Ready(), err
}

// TakeIn delivers to the loop that was handed over what a segment brought back, and returns the tasks that are to run.
// apart says that those are not for a segment. between is that of [Redeliver], and so is the error.
func TakeIn(loop *pregel.Loop, ready []*pregel.Task, r *Result, between func(int)) (queue []*pregel.Task, apart bool, err error) {
	if ready, err = Redeliver(loop, ready, r.Deliveries, between); err == nil {
		ready, err = yield(loop, ready, r.Left)
	}
	return ready, r.Apart || len(r.Deliveries) == 0, err
}

// yield puts on record what executions did in tasks that they gave back, or were lost with, and returns the tasks that
// are to run. ready are those that the loop has handed out.
func yield(loop *pregel.Loop, ready []*pregel.Task, left map[string]pregel.Value) ([]*pregel.Task, error) {
	out := newHandedOut(ready)
	for _, t := range ready {
		news, ok := left[t.Key()]
		if !ok || t.Retry != nil { // whether to run a subgraph on is asked again
			continue
		}
		stored, err := graphadapter.MergeLedger(t.Ledger, news)
		if err != nil {
			return out.order, fmt.Errorf("the task %s was given back: %w", t.Key(), err)
		}
		out.remove(t, t.Key())
		loop.Deliver(t, pregel.Outcome{Yielded: true, Ledger: stored, Kept: taskrun.KeptIn(t, stored), Spent: taskrun.SpentIn(t, stored)})
		out.add(loop.Ready())
	}
	return out.order, nil
}
