package record

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/semaphore"
)

// atOnce is how many changes this process asks of one record at once. The rest wait here: a server of Temporal takes ten updates of one
// workflow at a time, from all processes, and sends the eleventh away, which then comes back at a time when others are sent away.
const atOnce = 4

// turns are those of the changes that are asked of records.
type turns struct {
	most     int64 // at once, 0 for atOnce
	mu       sync.Mutex
	byThread map[string]*turn
}

type turn struct {
	*semaphore.Weighted
	users int // guarded by turns.mu
}

// take waits for a turn. done must be called once, when there is no error.
func (t *turns) take(ctx context.Context, threadID string) (done func(), err error) {
	t.mu.Lock()
	one, ok := t.byThread[threadID]
	if !ok {
		one = &turn{Weighted: semaphore.NewWeighted(cmp.Or(t.most, atOnce))}
		if t.byThread == nil {
			t.byThread = map[string]*turn{}
		}
		t.byThread[threadID] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.byThread, threadID)
		}
	}
	if err := one.Acquire(ctx, 1); err != nil {
		leave()
		return nil, err
	}
	return func() { one.Release(1); leave() }, nil
}

// readings are the reads of records. Those who ask for a record while it is being read share the next read: a server of Temporal holds
// one query of a workflow that is busy, and sends others away.
type readings struct {
	mu       sync.Mutex
	byThread map[string]*reading
}

// reading is a record that is being read.
type reading struct {
	next *read // what those share who came since the read began; nil when nobody did
}

type read struct {
	done   chan struct{}
	thread Thread
	err    error
}

// get returns a record as it is now, or later.
func (rs *readings) get(ctx context.Context, threadID string, query func(context.Context) (Thread, error)) (Thread, error) {
	one := rs.join(threadID, query)
	select {
	case <-one.done:
		return one.thread, one.err
	case <-ctx.Done():
		return Thread{}, ctx.Err()
	}
}

func (rs *readings) join(threadID string, query func(context.Context) (Thread, error)) *read {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if under := rs.byThread[threadID]; under != nil {
		if under.next == nil {
			under.next = &read{done: make(chan struct{})}
		}
		return under.next
	}
	if rs.byThread == nil {
		rs.byThread = map[string]*reading{}
	}
	rs.byThread[threadID] = &reading{}
	first := &read{done: make(chan struct{})}
	go rs.run(threadID, first, query)
	return first
}

// run reads until nobody has come since the last read began.
func (rs *readings) run(threadID string, one *read, query func(context.Context) (Thread, error)) {
	for one != nil {
		one.thread, one.err = patiently(query)
		close(one.done)
		rs.mu.Lock()
		under := rs.byThread[threadID]
		if one, under.next = under.next, nil; one == nil {
			delete(rs.byThread, threadID)
		}
		rs.mu.Unlock()
	}
}

// How long a read is tried again where the server has no time for it, and how often.
const (
	patience = time.Minute
	pause    = 100 * time.Millisecond
)

func patiently(query func(context.Context) (Thread, error)) (Thread, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for {
		t, err := query(ctx)
		var full *serviceerror.ResourceExhausted
		var late *serviceerror.DeadlineExceeded
		if err == nil || !errors.As(err, &full) && !errors.As(err, &late) {
			return t, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return t, err
		}
	}
}
