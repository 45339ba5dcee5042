package job_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// TestOnlyALeaderRunsItsAttempts: what would do an attempt's work beside its leader is refused, with what to do instead, and no
// thread has a job's id.
func TestOnlyALeaderRunsItsAttempts(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go"})
	s.until(id, "finished")
	open, next, ended := job.AttemptThread(id, "p1-2", 1), job.AttemptThread(id, "p1-2", 2), job.AttemptThread(id, "p1-1", 1)
	v, err := s.Job(t.Context(), id)
	require.NoError(t, err)
	graph := v.Experts[0].Graph
	refused := func(what string, err error, command ...string) {
		t.Helper()
		var e *thread.Error
		require.ErrorAs(t, err, &e, what)
		require.ErrorIs(t, err, thread.ErrBadInput, what)
		require.Equal(t, command, e.Command, what)
	}
	tried := func(id string, command ...string) {
		t.Helper()
		_, err := s.Start(t.Context(), thread.StartRequest{Graph: graph, Thread: id, Input: json.RawMessage(`{}`)})
		refused("run", err, command...)
	}
	tried(open, "job", "retry", id, "p1-2")
	tried(next, "job", "retry", id, "p1-2")
	tried(ended, "job", "retry", id, "p1-1")
	past, err := s.History(t.Context(), thread.HistoryRequest{Thread: ended})
	require.NoError(t, err)
	_, err = s.Fork(t.Context(), thread.ForkRequest{Thread: ended, Checkpoint: past[len(past)-1].Checkpoint})
	refused("fork", err, "job", "retry", id, "p1-1")

	_, err = s.StopJob(t.Context(), id, job.Halt{})
	require.NoError(t, err)
	_, err = s.Retry(t.Context(), thread.RetryRequest{Thread: open})
	refused("retry", err, "job", "recover", id)
	tried(open, "job", "recover", id)
	s.hold.Store(false)
	_, err = s.RecoverJob(t.Context(), id, job.Recover{})
	require.NoError(t, err)
	_, err = s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	_, err = s.Retry(t.Context(), thread.RetryRequest{Thread: open})
	refused("retry", err, "job", "show", id)
	_, err = s.Show(t.Context(), job.AttemptThread(id, "p1-2", 3))
	require.ErrorIs(t, err, thread.ErrNotFound)

	free := "j" + testserver.Queue(t)
	tried(job.WorkflowID(free))
	_, err = s.CreateSchedule(t.Context(), thread.ScheduleRequest{ID: job.WorkflowID(free), Every: time.Hour, Run: thread.StartRequest{Graph: graph}})
	refused("schedule", err)
	s.submit(job.Job{ID: free, Goal: "go"})
}
