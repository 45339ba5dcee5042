package serve

import (
	"context"
	"sync"

	"superstep.dev/serve/record"
)

// watches are the threads whose records somebody follows in this process. Each record is asked once for all who do: a server of
// Temporal holds few questions to one workflow at a time.
type watches struct {
	mu       sync.Mutex
	byThread map[string]*watch
}

// watch is one record that is followed.
type watch struct {
	followers int // guarded by watches.mu
	stop      context.CancelFunc

	mu   sync.Mutex
	last watched
}

// watched is what is known of a record: the error says that it can be followed no further.
type watched struct {
	thread  record.Thread
	err     error
	changed chan struct{} // closed when there is something later
}

// join begins to follow a record as it is known, or joins those who do. leave must be called once.
func (ws *watches) join(records *record.Records, t record.Thread) (w *watch, leave func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, ok := ws.byThread[t.ID]
	if !ok || w.now().err != nil {
		ctx, cancel := context.WithCancel(context.Background())
		w = &watch{stop: cancel, last: watched{thread: t, changed: make(chan struct{})}}
		if ws.byThread == nil {
			ws.byThread = map[string]*watch{}
		}
		ws.byThread[t.ID] = w
		go w.run(ctx, records, t)
	}
	w.followers++
	return w, func() { ws.leave(t.ID, w) }
}

func (ws *watches) leave(threadID string, w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.followers--; w.followers > 0 {
		return
	}
	w.stop()
	if ws.byThread[threadID] == w {
		delete(ws.byThread, threadID)
	}
}

func (w *watch) now() watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *watch) put(next watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next.changed = make(chan struct{})
	close(w.last.changed)
	w.last = next
}

// run follows the record until nobody wants to know any more.
func (w *watch) run(ctx context.Context, records *record.Records, t record.Thread) {
	for {
		next, err := records.Changed(ctx, t.ID, t.Version)
		if err == nil && (next.Deleted || !next.Created.Equal(t.Created)) {
			err = record.ErrMissing
		}
		if ctx.Err() != nil {
			return
		}
		w.put(watched{thread: next, err: err})
		if err != nil {
			return
		}
		t = next
	}
}

// until returns the record when it is as wanted, behind the version that the caller has.
func (w *watch) until(ctx context.Context, wanted func(record.Thread) bool) (record.Thread, error) {
	for {
		now := w.now()
		switch {
		case now.err != nil:
			return now.thread, now.err
		case wanted(now.thread):
			return now.thread, nil
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return now.thread, ctx.Err()
		}
	}
}
