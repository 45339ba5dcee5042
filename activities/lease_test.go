package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
)

// TestWhoIsToldThatItIsOverIsOver: a process that was frozen for longer than its lease asks before its timers run, and is told that
// the task is another's. The reply to an older heartbeat that comes then changes nothing: the execution ends as one that counts for
// nothing, and is not taken for a node that failed.
func TestWhoIsToldThatItIsOverIsOver(t *testing.T) {
	l := &lease{info: activity.Info{HeartbeatTimeout: time.Hour}, began: time.Now()}
	held, release := l.hold(t.Context(), &host.Tally{})
	defer release()
	if err := l.Held(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.began = time.Now().Add(-time.Hour) // frozen
	l.mu.Unlock()
	if err := l.Held(); !errors.Is(err, graphadapter.ErrFenced) {
		t.Errorf("it is held: %v", err)
	}
	_ = l.heard(time.Now(), nil)
	if err := l.Held(); !errors.Is(err, graphadapter.ErrFenced) {
		t.Errorf("after a late reply it is held again: %v", err)
	}
	if err := context.Cause(held); !errors.Is(err, graphadapter.ErrFenced) {
		t.Errorf("the node goes on: %v", err)
	}
}

// TestAHeartbeatIsWaitedForAsLongAsTheLease: to send it again sooner would ask a busy server for more.
func TestAHeartbeatIsWaitedForAsLongAsTheLease(t *testing.T) {
	l := &lease{info: activity.Info{HeartbeatTimeout: time.Hour}, began: time.Now().Add(-20 * time.Minute)}
	for _, step := range []struct {
		renewed, want time.Duration
	}{{-1, 34 * time.Minute}, {10 * time.Minute, 44 * time.Minute}, {2 * time.Hour, time.Second}} {
		if step.renewed >= 0 {
			l.renew(time.Now().Add(-step.renewed))
		}
		if got := l.mostWait(); got > step.want || got < step.want-time.Minute {
			t.Errorf("renewed %v ago, a heartbeat waits for %v, want %v", step.renewed, got, step.want)
		}
	}
}
