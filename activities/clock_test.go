package activities

import (
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
)

// TestOnlyTheServersClockCounts: the worker on which an attempt failed, and the one that waits for the next, have clocks
// that are a day wrong, and the wait is as long as it was to be.
func TestOnlyTheServersClockCounts(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"fast": 24 * time.Hour, "slow": -24 * time.Hour, "right": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := func() time.Time { return time.Now().Add(-wrong) } // what this worker's clock does not show
				open := func(kept graphadapter.Progress) *host.Task {
					task, err := host.Open(&graphadapter.NodeRequest{}, host.Execution{Attempt: 1}, kept,
						&lease{info: activity.Info{StartedTime: server()}, began: time.Now()})
					if err != nil {
						t.Fatal(err)
					}
					return task
				}
				first := open(graphadapter.Progress{})
				time.Sleep(3 * time.Second) // it works, and fails
				first.Outbox.Fail(t.Context(), 10*time.Second, &pregel.NodeError{}, nil)
				if at, want := first.CarryOver().RetryAt, server().Add(10*time.Second); !at.Equal(want) {
					t.Errorf("the next attempt is to begin at %v, not %v", at, want)
				}
				time.Sleep(4 * time.Second)
				if early := open(first.Progress()).Early(); early == nil || early.After != 6*time.Second {
					t.Errorf("it waits %v more", early)
				}
				s := &segmentRun{lease: &lease{info: activity.Info{StartedTime: server()}, began: time.Now()}}
				time.Sleep(time.Second)
				if now := s.Now(); !now.Equal(server()) {
					t.Errorf("a fused superstep takes it for %v, and it is %v", now, server())
				}
			})
		})
	}
}
