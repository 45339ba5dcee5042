package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// scheduled runs a schedule command for programs, and decodes what it says.
func scheduled[T any](r *rig, args ...string) (v T) {
	r.t.Helper()
	e := r.exits(0, r.superstep(append([]string{"schedule"}, append(args, "-o", "json")...)...))
	require.NoError(r.t, json.Unmarshal([]byte(e.stdout), &v), e.stdout)
	return v
}

// listedSchedule is a schedule as the list has it, nil when it has none of that name.
func (r *rig) listedSchedule(name string) *thread.ScheduleView {
	for _, v := range scheduled[[]thread.ScheduleView](r, "list", "--limit", "1000") {
		if v.ID == name {
			return &v
		}
	}
	return nil
}

// The runs of a schedule are threads as any other: they are listed, wait in the inbox and are answered. The schedule goes on while workers
// are killed, and what came due meanwhile begins when one is there.
func TestSchedules(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker")
	name := testserver.Queue(t)
	v := scheduled[thread.ScheduleView](r, "create", name, "asks", "--cron", "30 2 * * *", "--timezone", "America/New_York", "--paused")
	require.True(t, v.Paused)
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	require.Equal(t, "02:30", v.Next[0].In(zone).Format("15:04"))
	require.Nil(t, v.Last)

	began := scheduled[thread.ScheduleView](r, "trigger", name)
	r.until("the schedule has begun a run", func() bool { // trigger waits for it, but not for long
		if v := r.listedSchedule(name); began.Last == nil && v != nil {
			began = *v
		}
		return began.Last != nil
	})
	run := began.Last.Thread
	require.True(t, strings.HasPrefix(run, name+"-"), run)
	questions := r.wait(run, thread.StatusWaiting).Questions
	r.until("the inbox has it", func() bool {
		return strings.Contains(r.exits(0, r.superstep("inbox", "--graph", "asks", "--limit", "1000")).stdout, run)
	})
	require.Contains(t, r.exits(0, r.superstep("list", "--graph", "asks", "--limit", "1000")).stdout, run)
	for i, answer := range []any{"red", 7} {
		_, err = r.answer(run, questions[i].ID, answer)
		require.NoError(t, err)
	}
	r.wait(run, thread.StatusFinished)

	often := name + "-often"
	scheduled[thread.ScheduleView](r, "create", often, "adds", "--every", "1s", "--overlap", "allow", "--input", `{"note":"x"}`)
	last := func() string {
		if v := r.listedSchedule(often); v != nil && v.Last != nil {
			return v.Last.Thread
		}
		return ""
	}
	r.until("the first run", func() bool { return last() != "" })
	r.kill(worker)
	missed := last()
	r.until("a run that nobody works on", func() bool {
		missed = last()
		v, err := r.client.Show(t.Context(), missed)
		return err == nil && v.Status == thread.StatusRunning
	})
	r.graphsWorker("another")
	r.wait(missed, thread.StatusFinished)
	require.Equal(t, []string{"x"}, value[[]string](r, missed, "log"))

	paused := scheduled[thread.ScheduleView](r, "pause", often, "--reason", "the books are closed")
	require.True(t, paused.Paused)
	require.Contains(t, paused.Note, "the books are closed")
	require.False(t, scheduled[thread.ScheduleView](r, "unpause", often).Paused)
	before := last()
	r.until("it goes on", func() bool { return last() != before })
	for _, one := range []string{name, often} {
		scheduled[any](r, "delete", one)
		r.until("it is gone", func() bool { return r.listedSchedule(one) == nil })
	}
	r.wait(run, thread.StatusFinished)
	r.exits(4, r.superstep("schedule", "trigger", name))
}

// What cannot be meant makes no schedule.
func TestBadSchedules(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	name := testserver.Queue(t)
	create := func(code int, args ...string) {
		t.Helper()
		r.exits(code, r.superstep(append([]string{"schedule", "create", name}, args...)...))
	}
	create(6, "nobody", "--every", "1h")
	create(2, "adds", "--every", "1h", "--input", `{"note":7}`)
	create(2, "adds", "--cron", "0 0 31 2 *")
	create(2, "adds", "--cron", "61 0 * * *")
	create(2, "adds", "--cron", "@fortnightly")
	create(2, "adds", "--cron", "0 3 * * *", "--timezone", "Mars/Base")
	create(2, "adds", "--every", "1h", "--thread", strings.Repeat("x", 171))
	for _, what := range []string{"trigger", "pause", "delete"} {
		r.exits(4, r.superstep("schedule", what, name))
	}
	r.until("the index has none that was refused", func() bool { return r.listedSchedule(name) == nil })
	create(0, "adds", "--every", "1h", "--paused")
	create(2, "adds", "--every", "1h")
	r.exits(0, r.superstep("schedule", "delete", name))
}
