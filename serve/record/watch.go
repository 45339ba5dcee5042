package record

import (
	"context"
	"sync"
)

// watches are the records that somebody follows in this process. Each record is asked once for all who do: a server of Temporal holds few
// questions to one workflow at a time.
type watches struct {
	mu       sync.Mutex
	byThread map[string]*watch
}

// watch is one record that is followed. It asks the record when somebody wants to know more than it knows, so nothing is under way for
// those who have what they waited for.
type watch struct {
	first     Thread
	followers int  // guarded by watches.mu
	asking    bool // guarded by watches.mu
	stop      chan struct{}
	asks      chan struct{} // of one: somebody wants to know more

	mu     sync.Mutex
	last   watched
	wanted int // the number of what somebody waits for
}

// watched is what is known of a record: the error says that it can be followed no further. The first one is number 1.
type watched struct {
	number  int
	thread  Thread
	err     error
	changed chan struct{} // closed when there is something later
}

// Follower follows a record, from how somebody knows it.
type Follower struct {
	watch *watch
	known Thread
	leave func()
}

// Follow begins to follow a record as it is known. Leave must be called once.
func (r *Records) Follow(known Thread) *Follower {
	ws := &r.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, ok := ws.byThread[known.ID]
	if !ok || w.now().err != nil || !w.first.Created.Equal(known.Created) {
		w = &watch{first: known, stop: make(chan struct{}), asks: make(chan struct{}, 1), last: watched{changed: make(chan struct{})}}
		if ws.byThread == nil {
			ws.byThread = map[string]*watch{}
		}
		ws.byThread[known.ID] = w
		go w.run(r)
	}
	w.followers++
	return &Follower{watch: w, known: known, leave: func() { ws.leave(w) }}
}

// Leave ends it.
func (f *Follower) Leave() { f.leave() }

// Until returns the record when it is as wanted, which is asked of no record older than the one that was known. Errors: ErrMissing when
// the thread is gone.
func (f *Follower) Until(ctx context.Context, wanted func(Thread) bool) (Thread, error) {
	for {
		now := f.watch.now()
		switch {
		case now.err != nil:
			return now.thread, now.err
		case now.number > 0 && now.thread.Version >= f.known.Version && wanted(now.thread):
			return now.thread, nil
		}
		f.watch.want(now.number + 1)
		select {
		case <-now.changed:
		case <-ctx.Done():
			return now.thread, ctx.Err()
		}
	}
}

// leave ends a watch that nobody follows any more. One whose question is under way ends with the answer: a record would wait for somebody
// who has gone, and who comes back meanwhile joins.
func (ws *watches) leave(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.followers--; w.followers == 0 && !w.asking {
		ws.end(w)
	}
}

func (ws *watches) end(w *watch) {
	close(w.stop)
	if ws.byThread[w.first.ID] == w {
		delete(ws.byThread, w.first.ID)
	}
}

// begin says that a question is under way, unless nobody follows.
func (ws *watches) begin(w *watch) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.asking = w.followers > 0
	return w.asking
}

// finish says that it is no more.
func (ws *watches) finish(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.asking = false; w.followers == 0 {
		ws.end(w)
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
	next.number, next.changed = w.last.number+1, make(chan struct{})
	close(w.last.changed)
	w.last = next
}

// want says that somebody waits for what has that number.
func (w *watch) want(number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number <= w.wanted {
		return
	}
	w.wanted = number
	select {
	case w.asks <- struct{}{}:
	default: // it has been said
	}
}

// run asks the record whenever somebody wants to know more, until nobody follows.
func (w *watch) run(r *Records) {
	for {
		select {
		case <-w.stop:
			return
		case <-w.asks:
		}
		if !r.watches.begin(w) {
			continue // it is being stopped
		}
		next := w.ask(r)
		w.put(next)
		r.watches.finish(w)
		if next.err != nil {
			return
		}
	}
}

// ask reads the record, and when it has been read waits for a change.
func (w *watch) ask(r *Records) (next watched) {
	now := w.now()
	if now.number == 0 {
		next.thread, next.err = r.Get(context.Background(), w.first.ID)
	} else {
		next.thread, next.err = r.changed(context.Background(), now.thread)
	}
	if next.err == nil && (next.thread.Deleted || !next.thread.Created.Equal(w.first.Created)) {
		next.err = ErrMissing
	}
	return next
}

// makings are the threads that somebody in this process waits for and nobody has made yet.
type makings struct {
	mu       sync.Mutex
	byThread map[string]map[chan struct{}]bool
}

// join waits for a thread: made tells that this process has made it. leave must be called once.
func (m *makings) join(threadID string) (made <-chan struct{}, leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := make(chan struct{}, 1)
	if m.byThread == nil {
		m.byThread = map[string]map[chan struct{}]bool{}
	}
	if m.byThread[threadID] == nil {
		m.byThread[threadID] = map[chan struct{}]bool{}
	}
	m.byThread[threadID][one] = true
	return one, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if delete(m.byThread[threadID], one); len(m.byThread[threadID]) == 0 {
			delete(m.byThread, threadID)
		}
	}
}

// tell tells those who wait for a thread.
func (m *makings) tell(threadID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for one := range m.byThread[threadID] {
		select {
		case one <- struct{}{}:
		default: // it has been told
		}
	}
}
