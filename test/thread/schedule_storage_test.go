package thread_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestTheInputOfAScheduleIsItsThreads: a large input of a schedule goes with each of its runs and with no other thread: erasing a thread of
// the schedule's name leaves it to the runs that are to come, and erasing those leaves nothing of it in the storage.
func TestTheInputOfAScheduleIsItsThreads(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t))
	g := rig.Chain("scheduled-large", "a").MustCompile()
	s.work(g)
	large := said(30_000, 11)
	input, err := json.Marshal(map[string]any{"log": []string{large}})
	require.NoError(t, err)
	name := s.Queue + "-nightly"
	_, err = s.Client.CreateSchedule(t.Context(), thread.ScheduleRequest{ID: name, Run: thread.StartRequest{Graph: g.Name(), Input: input}, Every: time.Hour, Paused: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Client.DeleteSchedule(context.Background(), name)) })

	_, err = g.Thread(s.Client, name).Invoke(t.Context(), rig.Wrote("x"))
	require.NoError(t, err)
	_, err = s.Client.Erase(t.Context(), thread.EraseRequest{Thread: name})
	require.NoError(t, err)
	v, err := s.Client.TriggerSchedule(t.Context(), name)
	require.NoError(t, err)
	run := g.Thread(s.Client, v.Last.Thread)
	rig.AwaitFinished(t, run)
	require.Equal(t, []string{large, "a"}, rig.LogOf(t, run))

	_, err = s.Client.Erase(t.Context(), thread.EraseRequest{Thread: run.ID()})
	require.NoError(t, err)
	objects, _ := s.objects()
	require.Empty(t, objects)
}
