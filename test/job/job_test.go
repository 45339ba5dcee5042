package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/thread"
)

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
	require.ErrorIs(t, err, thread.ErrNotFound)
	require.ErrorContains(t, err, "is a job, not a thread")
	th, err := s.Show(t.Context(), job.AttemptThread(id, "p1-1", 1))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, th.Status)
	require.Contains(t, string(th.Output["output"]), `"first"`)
}

// TestB9ReadingChangesNothing: a job finishes without anybody looking, and looks leave its history as it is.
func TestB9ReadingChangesNothing(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "go"})
	require.NoError(t, s.Temporal.GetWorkflow(t.Context(), job.WorkflowID(id), "").Get(t.Context(), nil)) // nobody asked it
	events := func() int64 {
		d, err := s.Temporal.DescribeWorkflowExecution(t.Context(), job.WorkflowID(id), "")
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
		var failed *thread.JobError
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
	require.NoError(t, s.Temporal.GetWorkflow(ctx, job.WorkflowID(id), "").Get(ctx, nil)) // its run has ended too
	before, err := s.Job(ctx, id)
	require.NoError(t, err)
	for what, c := range map[string]struct {
		call func() error
		kind error
		says string
	}{
		"stop of a finished job":  {func() error { _, err := s.StopJob(ctx, id, job.Halt{Reason: ""}); return err }, thread.ErrBadInput, "it has finished"},
		"recovery of a finished":  {func() error { _, err := s.RecoverJob(ctx, id, job.Recover{}); return err }, thread.ErrNotFailed, "FINISHED"},
		"retry in a finished job": {func() error { _, err := s.RetrySubJob(ctx, id, "p1-1", ""); return err }, thread.ErrBadInput, "FINISHED"},
		"a budget of a finished":  {func() error { _, err := s.RaiseBudget(ctx, id, job.Budget{Tokens: 1}); return err }, thread.ErrBadInput, "FINISHED"},
		"a decision on no plan":   {func() error { _, err := s.DecidePlan(ctx, id, job.Decision{Verdict: "approve"}); return err }, thread.ErrBadInput, "FINISHED"},
		"stop of nothing":         {func() error { _, err := s.StopJob(ctx, id+"x", job.Halt{Reason: ""}); return err }, thread.ErrNotFound, "there is no job"},
		"a look at nothing":       {func() error { _, err := s.Job(ctx, id+"x"); return err }, thread.ErrNotFound, "job list"},
		"an answer of nothing":    {func() error { _, err := s.JobAnswer(ctx, id+"x"); return err }, thread.ErrNotFound, "there is no job"},
		"the same id again": {func() error {
			_, err := s.SubmitJob(ctx, thread.SubmitJob{Leader: "lead", Job: job.Job{ID: id, Goal: "go"}})
			return err
		}, thread.ErrBadInput, "FINISHED"},
		"a leader that is not there": {func() error {
			_, err := s.SubmitJob(ctx, thread.SubmitJob{Leader: "boss", Job: job.Job{Goal: "go"}})
			return err
		}, thread.ErrNoWorker, "it serves lead"},
		"an expert that is not there": {func() error {
			_, err := s.SubmitJob(ctx, thread.SubmitJob{Leader: "lead", Job: job.Job{Goal: "go", Expert: "nobody"}})
			return err
		}, thread.ErrBadInput, "nobody"},
		"an id with a slash": {func() error {
			_, err := s.SubmitJob(ctx, thread.SubmitJob{Leader: "lead", Job: job.Job{ID: "a/b", Goal: "go"}})
			return err
		}, thread.ErrBadInput, "a/b"},
		"no goal": {func() error { _, err := s.SubmitJob(ctx, thread.SubmitJob{Leader: "lead"}); return err }, thread.ErrBadInput, "no goal"},
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
	request := thread.SubmitJob{Leader: "lead", RequestID: "r-1", Job: job.Job{ID: id, Goal: "go"}}
	for range 2 {
		v, err := s.SubmitJob(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, id, v.ID)
	}
	request.RequestID = "r-2"
	_, err := s.SubmitJob(t.Context(), request)
	require.ErrorIs(t, err, thread.ErrRunning)
	_, err = s.StopJob(t.Context(), id, job.Halt{Reason: ""})
	require.NoError(t, err)
}

// TestADecidedPlanIsAskedNoMore: not even where the server's index still has the question.
func TestADecidedPlanIsAskedNoMore(t *testing.T) {
	s := newSteered(t)
	s.hold.Store(true)
	id := s.submit(job.Job{Goal: "go", Policy: job.Policy{Approve: "first"}})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		v, err := s.Job(t.Context(), id)
		assert.NoError(c, err)
		assert.Len(c, v.Waiting, 1)
	}, 2*time.Minute, 20*time.Millisecond)
	_, err := s.DecidePlan(t.Context(), id, job.Decision{PlanVersion: 1, Verdict: "approve"})
	require.NoError(t, err)
	v, err := s.Job(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, v.Waiting)
	s.hold.Store(false)
	_, err = s.StopJob(t.Context(), id, job.Halt{})
	require.NoError(t, err)
}

// TestAFinishedJobIsToldNothing: and nobody is sent to recover it, which would be refused.
func TestAFinishedJobIsToldNothing(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "go"})
	_, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	_, err = s.RetrySubJob(t.Context(), id, "p1-1", "")
	var refused *thread.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{"job", "answer", id}, refused.Command)
}

// TestARequestThatNamesNoJob: a repetition is the job that the first one has begun.
func TestARequestThatNamesNoJob(t *testing.T) {
	s := newSteered(t)
	request := thread.SubmitJob{Leader: "lead", RequestID: testserver.Queue(t), Job: job.Job{Goal: "go"}}
	first, err := s.SubmitJob(t.Context(), request)
	require.NoError(t, err)
	require.Regexp(t, "^lead-[a-z2-7]{26}$", first.ID)
	again, err := s.SubmitJob(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	request.RequestID += "-other"
	other, err := s.SubmitJob(t.Context(), request)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, other.ID)
}

// TestJobsAndInbox: questions of experts and of the job itself are in the inbox and with the job, and lists know it.
func TestJobsAndInbox(t *testing.T) {
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "ask", Policy: job.Policy{Approve: "first"}})
	s.until(id, "approving")
	// The server of these tests finds both by a prefix of either: it ignores letter case.
	other := s.submit(job.Job{ID: strings.ToUpper(id), Goal: "ask", Policy: job.Policy{Approve: "first"}})
	s.until(other, "approving")
	require.Eventually(t, func() bool {
		v, err := s.Job(t.Context(), other)
		require.NoError(t, err)
		return len(v.Waiting) == 1 && v.Waiting[0].Job == other
	}, 2*time.Minute, 50*time.Millisecond)
	waiting := func() (v thread.JobView) {
		require.Eventually(t, func() bool {
			var err error
			v, err = s.Job(t.Context(), id)
			require.NoError(t, err)
			return len(v.Waiting) == 1
		}, 2*time.Minute, 50*time.Millisecond)
		return v
	}
	v := waiting()
	require.True(t, v.Rests())
	require.Equal(t, job.WorkflowID(id), v.Waiting[0].Thread)
	require.Equal(t, "plan-1", v.Waiting[0].Question)
	require.Equal(t, id, v.Waiting[0].Job)
	require.Eventually(t, func() bool { // the server's index is a moment behind
		listed, err := s.Jobs(t.Context(), thread.JobsQuery{Leader: "lead", Status: job.StatusRunning})
		require.NoError(t, err)
		for _, item := range listed {
			if item.ID == id && item.Waits {
				return item.Goal == "ask"
			}
		}
		return false
	}, 2*time.Minute, 50*time.Millisecond)

	_, err := s.DecidePlan(t.Context(), id, job.Decision{PlanVersion: 7, Verdict: "approve"})
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	_, err = s.DecidePlan(t.Context(), id, job.Decision{PlanVersion: v.PlanVersion, Verdict: "approve"})
	require.NoError(t, err)
	threadID := job.AttemptThread(id, "p1-1", 1)
	require.Eventually(t, func() bool { v = waiting(); return v.Waiting[0].Thread == threadID }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, "who?", v.Waiting[0].Asks)
	require.Equal(t, id, v.Waiting[0].Job)
	_, err = s.Resume(t.Context(), thread.ResumeRequest{Thread: threadID, Value: []byte(`"ann"`)})
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
	require.ErrorIs(t, err, thread.ErrNotFound)
	_, err = s.ChangeExperts(t.Context(), id, nil, "other")
	require.ErrorContains(t, err, "is the only one")
	s.hold.Store(false)
	_, err = s.RaiseBudget(t.Context(), id, job.Budget{Attempts: 5})
	require.NoError(t, err)
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "after first", answer.Text)
}
