package activities

import (
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
)

// TestOnlyTheServersClockCounts: the worker on which an attempt failed, and the one that waits for the next, have clocks
// that are a day wrong, and the wait is as long as it was to be.
func TestOnlyTheServersClockCounts(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"fast": 24 * time.Hour, "slow": -24 * time.Hour, "right": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := func() time.Time { return time.Now().Add(-wrong) } // what this worker's clock does not show
				first := &owner{lease: lease{info: activity.Info{StartedTime: server()}, began: time.Now()}}
				time.Sleep(3 * time.Second) // it works, and fails
				first.progress.RetryAt = first.inTime(10 * time.Second)
				if at, want := first.progress.RetryAt, server().Add(10*time.Second); !at.Equal(want) {
					t.Errorf("the next attempt is to begin at %v, not %v", at, want)
				}
				time.Sleep(4 * time.Second)
				next := &owner{lease: lease{info: activity.Info{StartedTime: server()}, began: time.Now()}}
				next.progress.RetryAt = first.progress.RetryAt
				if wait := next.waitsFor(); wait != 6*time.Second {
					t.Errorf("it waits %v more", wait)
				}
				s := &segmentRun{info: activity.Info{StartedTime: server()}, began: time.Now()}
				time.Sleep(time.Second)
				if now := s.serverTime(); !now.Equal(server()) {
					t.Errorf("a fused superstep takes it for %v, and it is %v", now, server())
				}
			})
		})
	}
}
