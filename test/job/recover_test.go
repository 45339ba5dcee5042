package job_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/job"
	"superstep.dev/thread"
)

// TestStopAndRecover: what finished before a stop is kept, and a recovery does only the rest.
func TestStopAndRecover(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go"})
	s.until(id, "finished")
	_, err := s.RecoverJob(t.Context(), id, job.Recover{})
	require.ErrorIs(t, err, thread.ErrRunning)
	for range 2 {
		v, err := s.StopJob(t.Context(), id, job.Halt{Reason: "enough"})
		require.NoError(t, err)
		require.Equal(t, job.StatusStopped, v.Status)
		require.Equal(t, 1, v.Finished)
	}
	_, err = s.JobAnswer(t.Context(), id)
	require.ErrorContains(t, err, "enough")
	_, err = s.RetrySubJob(t.Context(), id, "p1-1", "")
	require.ErrorContains(t, err, "job recover "+id)

	s.hold.Store(false)
	before := s.ran.Load()
	recovered := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := s.RecoverJob(t.Context(), id, job.Recover{Lesson: "go on"})
			recovered <- err
		}()
	}
	won := 0
	for range 3 {
		if err := <-recovered; err == nil {
			won++
		} else {
			assert.True(t, errors.Is(err, thread.ErrRunning) || errors.Is(err, thread.ErrNotFailed), err)
		}
	}
	require.Equal(t, 1, won)
	v, err := s.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []string{"go on"}, v.SubJobs[1].Lessons, "the one that was stopped under way is told the lesson")
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
	require.Equal(t, before+1, s.ran.Load(), "the first subjob ran once")
}

// TestRecoverWhatFailed: the lesson reaches the subjob that had failed.
func TestRecoverWhatFailed(t *testing.T) {
	s := newSteered(t)
	s.fail.Store(true)
	id := s.submit(job.Job{Goal: "go"})
	_, err := s.JobAnswer(t.Context(), id)
	require.ErrorContains(t, err, "it is broken")
	s.fail.Store(false)
	_, err = s.RecoverJob(t.Context(), id, job.Recover{Again: []string{"p1-9"}})
	require.ErrorIs(t, err, thread.ErrNotFound)
	_, err = s.RecoverJob(t.Context(), id, job.Recover{Lesson: "mended"})
	require.NoError(t, err)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
}

// TestFailAJob: a person's word outweighs what the attempt under way still says, what finished is kept, and a recovery tells
// the lesson. A job is named by itself, or by the thread of an attempt.
func TestFailAJob(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go"})
	s.until(id, "finished")
	_, err := s.FailJob(t.Context(), id, job.Halt{SubJob: "p1-9"})
	require.ErrorIs(t, err, thread.ErrNotFound)
	attempt := job.AttemptThread(id, "p1-2", 1)
	for range 2 {
		v, err := s.FailJob(t.Context(), attempt, job.Halt{Reason: "the source is forged", By: "ann"})
		require.NoError(t, err)
		require.Equal(t, job.StatusFailed, v.Status)
		require.Equal(t, "failed for subjob p1-2 by ann: the source is forged", v.Reason)
		require.Equal(t, []job.Status{job.StatusFinished, job.StatusFailed}, []job.Status{v.SubJobs[0].Status, v.SubJobs[1].Status})
	}
	_, err = s.StopJob(t.Context(), id, job.Halt{})
	require.ErrorIs(t, err, thread.ErrBadInput)
	s.hold.Store(false)
	_, err = s.RecoverJob(t.Context(), id, job.Recover{Lesson: "use the archive"})
	require.NoError(t, err)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
}

// TestRecoverWhatWasTerminated: a job whose run was ended from outside goes on once its attempts have ended.
func TestRecoverWhatWasTerminated(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go"})
	s.until(id, "finished")
	require.Eventually(t, func() bool {
		v, err := s.Job(t.Context(), id)
		return err == nil && len(v.SubJobs) == 2 && v.SubJobs[1].Open
	}, 2*time.Minute, 20*time.Millisecond)
	require.NoError(t, s.Temporal.TerminateWorkflow(t.Context(), job.WorkflowID(id), "", "a test"))
	s.hold.Store(false)
	require.Eventually(t, func() bool {
		_, err := s.RecoverJob(t.Context(), id, job.Recover{})
		if !errors.Is(err, thread.ErrRunning) {
			require.NoError(t, err)
		}
		return err == nil
	}, 2*time.Minute, 100*time.Millisecond)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
}
