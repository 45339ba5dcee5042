package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestATriggerBeginsARunEachTime: also when the one before was a moment ago, though a run is named by the second that it begins in.
func TestATriggerBeginsARunEachTime(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := rig.Chain("triggered", "a").MustCompile()
	s.Work(g)
	name := s.Queue + "-hourly"
	_, err := s.CreateSchedule(t.Context(), thread.ScheduleRequest{ID: name, Run: thread.StartRequest{Graph: g.Name()}, Every: time.Hour, Paused: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.DeleteSchedule(context.Background(), name)) })
	seen := map[string]bool{}
	for range 3 {
		v, err := s.TriggerSchedule(t.Context(), name)
		require.NoError(t, err)
		require.NotNil(t, v.Last)
		seen[v.Last.Thread] = true
		_, err = s.Wait(t.Context(), v.Last.Thread)
		require.NoError(t, err)
	}
	require.Len(t, seen, 3)
}
