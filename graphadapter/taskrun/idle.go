package taskrun

import (
	"sync"
	"time"
)

// idleTimer calls expired after limit without progress. A nil timer does nothing.
type idleTimer struct {
	limit time.Duration

	mu    sync.Mutex
	holds int
	timer *time.Timer
}

func startIdleTimer(limit time.Duration, expired func()) *idleTimer {
	return &idleTimer{limit: limit, timer: time.AfterFunc(limit, expired)}
}

// progress starts the time anew.
func (t *idleTimer) progress() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == 0 {
		t.timer.Reset(t.limit)
	}
}

// hold stops the time until the returned function is called: a wait that the engine prescribes is not the node's.
func (t *idleTimer) hold() (release func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++
	t.timer.Stop()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.holds--
		if t.holds == 0 {
			t.timer.Reset(t.limit)
		}
	}
}

func (t *idleTimer) stop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++ // later progress must not start it again
	t.timer.Stop()
}
