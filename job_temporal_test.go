package superstep_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/job"
)

// steered is what a leader's expert does in these tests.
type steered struct {
	*server
	leader *superstep.Leader
	hold   atomic.Bool // attempts wait for their end
	fail   atomic.Bool
	ran    atomic.Int32
	long   string
}

// newSteered serves a leader of two subjobs, "first" and behind it "then".
func newSteered(t *testing.T) *steered {
	s := &steered{server: newServer(t)}
	work := superstep.NewExpert("work", "Does what the test wants.", func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		s.ran.Add(1)
		switch {
		case a.Goal == "ask":
			name, err := superstep.Interrupt[string](ctx, "who?")
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			return success(name)
		case s.hold.Load() && len(a.Inputs) > 0:
			<-ctx.Done()
			return job.WorkflowMessage{}, ctx.Err()
		case s.fail.Load() && len(a.Inputs) > 0:
			return job.WorkflowMessage{Status: job.ExecutionError, Lesson: "it is broken"}, nil
		case a.Goal == "long":
			return success(s.long)
		case len(a.Inputs) > 0:
			return success("after " + a.Inputs[0].Text)
		}
		return success("first")
	})
	s.leader = leaderOf(t, planner(func(_ context.Context, req job.PlanRequest) (job.Draft, error) {
		if req.Job.Goal == "unplannable" {
			return job.Draft{}, superstep.Permanent(errors.New("no model answers"))
		}
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: req.Job.Goal, Expert: "work"},
			{ID: "2", Goal: "then", Expert: "work", Dependencies: []string{"1"}}}}, nil
	}), work)
	s.workWith(superstep.WorkerConfig{Leaders: []*superstep.Leader{s.leader}})
	return s
}

func (s *steered) submit(j job.Job) string {
	s.t.Helper()
	if j.ID == "" {
		j.ID = "j" + testserver.Queue(s.t)
	}
	if j.Policy.MaxRetries == 0 {
		j.Policy.MaxRetries = -1
	}
	v, err := s.SubmitJob(s.t.Context(), superstep.SubmitJob{Leader: "lead", Job: j})
	require.NoError(s.t, err)
	require.Equal(s.t, "lead", v.Leader)
	return v.ID
}

// until follows a job up to an event of that kind.
func (s *steered) until(id, kind string) (all []job.Event) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for e, err := range s.FollowJob(ctx, id, 0) {
		require.NoError(s.t, err)
		if all = append(all, e); e.Kind == kind {
			return all
		}
	}
	require.FailNow(s.t, "the job ended without "+kind)
	return nil
}

// TestJob: from submission to the answer, with what happened in order and without gaps.
func TestJob(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "go", Requester: "ann"})
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
	require.Equal(t, job.StatusFinished, answer.View.Status)
	require.Positive(t, answer.View.Duration)

	kinds, last := []string{}, int64(0)
	for e, err := range s.FollowJob(t.Context(), id, 0) {
		require.NoError(t, err)
		require.Equal(t, last+1, e.Seq)
		last = e.Seq
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, "submitted planning planned started finished started finished job_finished", strings.Join(kinds, " "))
	require.Equal(t, answer.View.LastEvent, last)
	for range s.FollowJob(t.Context(), id, last) {
		require.Fail(t, "there is nothing behind the last event")
	}

	_, err = s.Show(t.Context(), job.WorkflowID(id))
	require.ErrorIs(t, err, superstep.ErrNotFound)
	require.ErrorContains(t, err, "is a job, not a thread")
	thread, err := s.Show(t.Context(), job.AttemptThread(id, "p1-1", 1))
	require.NoError(t, err)
	require.Equal(t, superstep.StatusFinished, thread.Status)
	require.Contains(t, string(thread.Output["output"]), `"first"`)
}

// TestB9ReadingChangesNothing: a job finishes without anybody looking, and looks leave its history as it is.
func TestB9ReadingChangesNothing(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "go"})
	require.NoError(t, s.temporal.GetWorkflow(t.Context(), job.WorkflowID(id), "").Get(t.Context(), nil)) // nobody asked it
	events := func() int64 {
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), job.WorkflowID(id), "")
		require.NoError(t, err)
		return d.GetWorkflowExecutionInfo().GetHistoryLength()
	}
	before := events()
	first, err := s.Job(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, job.StatusFinished, first.Status)
	for range 3 {
		again, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	require.Equal(t, before, events())
}

// TestB13AFastFailureHasOneAnswer: a job that fails at once fails once, with its reason, however early it is waited for.
func TestB13AFastFailureHasOneAnswer(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "unplannable"})
	for range 2 {
		_, err := s.JobAnswer(t.Context(), id)
		var failed *superstep.JobError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, job.StatusFailed, failed.View.Status)
		require.ErrorContains(t, err, "no model answers")
	}
}

// TestB23AnAnswerIsWhole: it is one text, also where the outputs are long, and a second job can follow the first.
func TestB23AnAnswerIsWhole(t *testing.T) {
	s := newSteered(t)
	s.long = strings.Repeat("0123456789abcdef", job.MaxInline/8)
	id := s.submit(job.Job{Goal: "long"})
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after "+s.long, answer.Text)
	require.NotNil(t, answer.Parts[0].Stored, "it is not kept in the leader's history")

	answer, err = s.JobAnswer(t.Context(), s.submit(job.Job{Goal: "long", Expert: "work"}))
	require.NoError(t, err)
	require.Equal(t, s.long, answer.Text)
}

// TestB24RefusalsAreErrors: what cannot be done is an error that says so, and changes nothing.
func TestB24RefusalsAreErrors(t *testing.T) {
	s := newSteered(t)
	ctx := t.Context()
	id := s.submit(job.Job{Goal: "go"})
	require.NoError(t, s.temporal.GetWorkflow(ctx, job.WorkflowID(id), "").Get(ctx, nil)) // its run has ended too
	before, err := s.Job(ctx, id)
	require.NoError(t, err)
	for what, c := range map[string]struct {
		call func() error
		kind error
		says string
	}{
		"stop of a finished job":  {func() error { _, err := s.StopJob(ctx, id, ""); return err }, superstep.ErrBadInput, "it has finished"},
		"recovery of a finished":  {func() error { _, err := s.RecoverJob(ctx, id, job.Recover{}); return err }, superstep.ErrNotFailed, "FINISHED"},
		"retry in a finished job": {func() error { _, err := s.RetrySubJob(ctx, id, "p1-1", ""); return err }, superstep.ErrBadInput, "FINISHED"},
		"a budget of a finished":  {func() error { _, err := s.RaiseBudget(ctx, id, job.Budget{Tokens: 1}); return err }, superstep.ErrBadInput, "FINISHED"},
		"a decision on no plan":   {func() error { _, err := s.DecidePlan(ctx, id, job.Decision{Verdict: "approve"}); return err }, superstep.ErrBadInput, "FINISHED"},
		"stop of nothing":         {func() error { _, err := s.StopJob(ctx, id+"x", ""); return err }, superstep.ErrNotFound, "there is no job"},
		"a look at nothing":       {func() error { _, err := s.Job(ctx, id+"x"); return err }, superstep.ErrNotFound, "job list"},
		"an answer of nothing":    {func() error { _, err := s.JobAnswer(ctx, id+"x"); return err }, superstep.ErrNotFound, "there is no job"},
		"the same id again": {func() error {
			_, err := s.SubmitJob(ctx, superstep.SubmitJob{Leader: "lead", Job: job.Job{ID: id, Goal: "go"}})
			return err
		}, superstep.ErrBadInput, "FINISHED"},
		"a leader that is not there": {func() error {
			_, err := s.SubmitJob(ctx, superstep.SubmitJob{Leader: "boss", Job: job.Job{Goal: "go"}})
			return err
		}, superstep.ErrNoWorker, "it serves lead"},
		"an expert that is not there": {func() error {
			_, err := s.SubmitJob(ctx, superstep.SubmitJob{Leader: "lead", Job: job.Job{Goal: "go", Expert: "nobody"}})
			return err
		}, superstep.ErrBadInput, "nobody"},
		"an id with a slash": {func() error {
			_, err := s.SubmitJob(ctx, superstep.SubmitJob{Leader: "lead", Job: job.Job{ID: "a/b", Goal: "go"}})
			return err
		}, superstep.ErrBadInput, "a/b"},
		"no goal": {func() error { _, err := s.SubmitJob(ctx, superstep.SubmitJob{Leader: "lead"}); return err }, superstep.ErrBadInput, "no goal"},
	} {
		err := c.call()
		assert.ErrorIs(t, err, c.kind, what)
		assert.ErrorContains(t, err, c.says, what)
	}
	after, err := s.Job(ctx, id)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestSubmitTwice: a request that is sent again is the one that was sent, another one of that id is refused while it runs.
func TestSubmitTwice(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := "j" + testserver.Queue(t)
	request := superstep.SubmitJob{Leader: "lead", RequestID: "r-1", Job: job.Job{ID: id, Goal: "go"}}
	for range 2 {
		v, err := s.SubmitJob(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, id, v.ID)
	}
	request.RequestID = "r-2"
	_, err := s.SubmitJob(t.Context(), request)
	require.ErrorIs(t, err, superstep.ErrRunning)
	_, err = s.StopJob(t.Context(), id, "")
	require.NoError(t, err)
}

// TestStopAndRecover: what finished before a stop is kept, and a recovery does only the rest.
func TestStopAndRecover(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go"})
	s.until(id, "finished")
	_, err := s.RecoverJob(t.Context(), id, job.Recover{})
	require.ErrorIs(t, err, superstep.ErrRunning)
	for range 2 {
		v, err := s.StopJob(t.Context(), id, "enough")
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
			assert.True(t, errors.Is(err, superstep.ErrRunning) || errors.Is(err, superstep.ErrNotFailed), err)
		}
	}
	require.Equal(t, 1, won)
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
	require.ErrorIs(t, err, superstep.ErrNotFound)
	_, err = s.RecoverJob(t.Context(), id, job.Recover{Lesson: "mended"})
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
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), job.WorkflowID(id), "", "a test"))
	s.hold.Store(false)
	require.Eventually(t, func() bool {
		_, err := s.RecoverJob(t.Context(), id, job.Recover{})
		if !errors.Is(err, superstep.ErrRunning) {
			require.NoError(t, err)
		}
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
}

// TestJobsAndInbox: questions of experts and of the job itself are in the inbox and with the job, and lists know it.
func TestJobsAndInbox(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "ask", Policy: job.Policy{Approve: "first"}})
	s.until(id, "approving")
	waiting := func() (v superstep.JobView) {
		require.Eventually(t, func() bool {
			var err error
			v, err = s.Job(t.Context(), id)
			require.NoError(t, err)
			return len(v.Waiting) == 1
		}, time.Minute, 50*time.Millisecond)
		return v
	}
	v := waiting()
	require.True(t, v.Rests())
	require.Equal(t, job.WorkflowID(id), v.Waiting[0].Thread)
	require.Equal(t, "plan-1", v.Waiting[0].Question)
	require.Equal(t, id, v.Waiting[0].Job)
	listed, err := s.Jobs(t.Context(), superstep.JobsQuery{Leader: "lead", Status: job.StatusRunning})
	require.NoError(t, err)
	at := -1
	for i, item := range listed {
		if item.ID == id {
			at = i
		}
	}
	require.GreaterOrEqual(t, at, 0)
	require.True(t, listed[at].Waits)
	require.Equal(t, "ask", listed[at].Goal)

	_, err = s.DecidePlan(t.Context(), id, job.Decision{PlanVersion: 7, Verdict: "approve"})
	require.ErrorIs(t, err, superstep.ErrAnswerRefused)
	_, err = s.DecidePlan(t.Context(), id, job.Decision{PlanVersion: v.PlanVersion, Verdict: "approve"})
	require.NoError(t, err)
	thread := job.AttemptThread(id, "p1-1", 1)
	require.Eventually(t, func() bool { v = waiting(); return v.Waiting[0].Thread == thread }, time.Minute, 50*time.Millisecond)
	require.Equal(t, "who?", v.Waiting[0].Asks)
	require.Equal(t, id, v.Waiting[0].Job)
	_, err = s.Resume(t.Context(), superstep.ResumeRequest{Thread: thread, Value: []byte(`"ann"`)})
	require.NoError(t, err)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after ann", answer.Text)
}

// TestExpertsAndBudget: both are changed while a job runs.
func TestExpertsAndBudget(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go", Budget: job.Budget{Attempts: 1}})
	s.until(id, "over_budget")
	served, err := s.LeaderExperts(t.Context(), "lead")
	require.NoError(t, err)
	other := served[0]
	other.Name = "other"
	v, err := s.ChangeExperts(t.Context(), id, []job.Profile{other})
	require.NoError(t, err)
	require.Len(t, v.Experts, 2)
	v, err = s.ChangeExperts(t.Context(), id, nil, "work")
	require.NoError(t, err, "what it is to do already, it does")
	require.Len(t, v.Experts, 1)
	_, err = s.ChangeExperts(t.Context(), id, []job.Profile{served[0]}, "nobody")
	require.ErrorIs(t, err, superstep.ErrNotFound)
	_, err = s.ChangeExperts(t.Context(), id, nil, "other")
	require.ErrorContains(t, err, "is the only one")
	s.hold.Store(false)
	_, err = s.RaiseBudget(t.Context(), id, job.Budget{Attempts: 5})
	require.NoError(t, err)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
}
