package thread_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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

// TestSchedulesShareNoThread: two schedules whose threads begin alike each begin a run in the same second.
func TestSchedulesShareNoThread(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := rig.Chain("shared", "a").MustCompile()
	s.Work(g)
	var began [2]thread.ScheduleView
	var triggering errgroup.Group
	for i := range began {
		name := fmt.Sprintf("%s-%d", s.Queue, i)
		_, err := s.CreateSchedule(t.Context(), thread.ScheduleRequest{ID: name, Run: thread.StartRequest{Graph: g.Name(), Thread: s.Queue}, Every: time.Hour, Paused: true})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.DeleteSchedule(context.Background(), name)) })
	}
	for together := false; !together; {
		for i := range began {
			triggering.Go(func() (err error) {
				began[i], err = s.TriggerSchedule(t.Context(), fmt.Sprintf("%s-%d", s.Queue, i))
				return err
			})
		}
		require.NoError(t, triggering.Wait())
		var when [2]string
		for i, v := range began {
			behind, is := strings.CutPrefix(v.Last.Thread, s.Queue+"-"+fmt.Sprintf("%s-%d", s.Queue, i))
			require.True(t, is, v.Last.Thread)
			_, err := s.Wait(t.Context(), v.Last.Thread)
			require.NoError(t, err)
			when[i] = behind
		}
		together = when[0] == when[1] // else a second ended between the two
	}
}
