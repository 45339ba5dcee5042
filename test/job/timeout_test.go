package job_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// endless is an expert whose attempts end only when they are made to; given a goal "ask" they wait for a person.
func endless(opts ...leader.ExpertOption) leader.Expert {
	return leader.NewExpert("endless", "Does not come to an end.", func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if a.Goal == "ask" {
			if _, err := superstep.Interrupt[string](ctx, "when?"); err != nil {
				return job.WorkflowMessage{}, err
			}
		}
		<-ctx.Done()
		return job.WorkflowMessage{}, ctx.Err()
	}, opts...)
}

// once is a job of one attempt.
func once(goal string, timeout time.Duration) job.Job {
	return job.Job{Goal: goal, Expert: "endless", Policy: job.Policy{MaxRetries: -1, AttemptTimeout: timeout}}
}

// TestAttemptTimeoutInMemory: an expert's own limit is stronger than the job's.
func TestAttemptTimeoutInMemory(t *testing.T) {
	t.Parallel()
	never := leader.WithExpertAnswers(func(ctx context.Context, _ job.Assignment, _ thread.Question) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for name, c := range map[string]struct {
		expert leader.Expert
		job    job.Job
	}{
		"its own":                {endless(leader.WithAttemptTimeout(20 * time.Millisecond)), once("work", time.Hour)},
		"the job's":              {endless(), once("work", 20*time.Millisecond)},
		"while it waits for one": {endless(), once("ask", 20*time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := rig.LeaderOf(t, plannedAs{}, c.expert).Invoke(t.Context(), c.job, never)
			var failed *thread.JobError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, job.StatusFailed, answer.View.Status)
			require.ErrorContains(t, err, "timed out: it had not ended after 20ms")
		})
	}
}

// TestAttemptTimeout: a worker ends an attempt that is out of time, and people see which version of the expert it was.
func TestAttemptTimeout(t *testing.T) {
	s := rig.NewServer(t)
	s.WorkWith(superstep.WorkerConfig{Leaders: []superstep.Leader{rig.LeaderOf(t, plannedAs{},
		endless(leader.WithAttemptTimeout(2*time.Second), leader.WithVersion("7")))}})
	served, err := s.LeaderExperts(t.Context(), "lead")
	require.NoError(t, err)
	require.Equal(t, "7", served[0].Version)
	for _, goal := range []string{"work", "ask"} {
		j := once(goal, time.Hour)
		j.ID = goal + testserver.Queue(t)
		_, err := s.SubmitJob(t.Context(), thread.SubmitJob{Leader: "lead", Job: j})
		require.NoError(t, err)
		answer, err := s.JobAnswer(t.Context(), j.ID)
		require.ErrorContains(t, err, "timed out: it had not ended after 2s", goal)
		require.Equal(t, "7", answer.View.Experts[0].Version)
		attempt, err := s.Show(t.Context(), job.AttemptThread(j.ID, answer.View.SubJobs[0].ID, 1))
		require.NoError(t, err)
		require.Equal(t, thread.StatusCancelled, attempt.Status)
	}
}

// TestAnExpertsThreadIsAThread: what its run keeps from its leader everybody else reads as ever, and a failed one can be
// retried.
func TestAnExpertsThreadIsAThread(t *testing.T) {
	fails := true
	g := superstep.NewEntrypoint("expert", func(_ context.Context, in map[string]string) (map[string]string, error) {
		if in["goal"] == "fail" && fails {
			fails = false
			return nil, errors.New("no luck")
		}
		return map[string]string{"status": "SUCCESS", "output": "done: " + in["goal"]}, nil
	})
	s := rig.NewServer(t)
	s.Work(g)
	start := func(goal string) (client.WorkflowRun, string) {
		thread := s.Queue + "-" + goal
		run, err := s.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: thread, TaskQueue: s.Queue, Memo: map[string]any{protocol.MemoGraph: "expert"}},
			protocol.GraphWorkflow, protocol.GraphInput{Graph: "expert", Expert: true, Input: protocol.Input{Value: pregel.Value(`{"goal":"` + goal + `"}`)}})
		require.NoError(t, err)
		return run, thread
	}
	run, threadID := start("work")
	var result protocol.GraphResult
	require.NoError(t, run.Get(t.Context(), &result))
	assert.Equal(t, "done: work", result.Message.Output)
	assert.Equal(t, threadID, result.Message.Stored.Thread)
	assert.Nil(t, result.State, "its leader gets no state")
	view, err := s.Show(t.Context(), threadID)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, view.Status)
	assert.Contains(t, string(view.Output[pregel.FunctionOutput]), "done: work")

	run, threadID = start("fail")
	require.Error(t, run.Get(t.Context(), nil))
	view, err = s.Show(t.Context(), threadID)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFailed, view.Status)
	assert.Contains(t, view.Failure.Message, "no luck")
	_, err = s.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.NoError(t, err)
	view, err = s.Wait(t.Context(), threadID)
	require.NoError(t, err)
	assert.Contains(t, string(view.Output[pregel.FunctionOutput]), "done: fail")
}
