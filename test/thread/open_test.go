package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestOpenQuestions: those of all threads and jobs are counted, by graph and with when the oldest was asked, without a worker.
func TestOpenQuestions(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	l, err := leader.New("asker", rig.Planner(func(context.Context, job.PlanRequest) (job.Draft, error) {
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "one", Expert: "clerk"}}}, nil
	}), leader.NewExpert("clerk", "Says something.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		return job.WorkflowMessage{Status: job.Success, Output: "done"}, nil
	}))
	require.NoError(t, err)
	stop := e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Leaders: []superstep.Leader{l}})
	began := time.Now().Truncate(time.Second)
	first, second := g.Thread(e.Client, "first"), g.Thread(e.Client, "second")
	for _, th := range []*superstep.Thread[rig.Counter]{first, second} {
		_, err := th.Invoke(t.Context(), rig.Wrote("a word"))
		require.NoError(t, err)
	}
	_, err = e.SubmitJob(t.Context(), thread.SubmitJob{Leader: "asker", Job: job.Job{ID: "r-3", Goal: "one", Policy: job.Policy{Approve: "first"}}})
	require.NoError(t, err)
	open := func(want map[string]int, graphs ...string) (oldest map[string]time.Time) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			all, err := e.OpenQuestions(t.Context(), graphs...)
			assert.NoError(c, err)
			got := map[string]int{}
			oldest = map[string]time.Time{}
			for _, q := range all {
				assert.Equal(c, thread.AboutQuestion, q.About)
				got[q.Graph], oldest[q.Graph] = q.Open, q.Oldest
			}
			assert.Equal(c, want, got)
		}, 2*time.Minute, 50*time.Millisecond)
		return oldest
	}
	oldest := open(map[string]int{"chatting": 2, "asker": 1})
	for graph, at := range oldest {
		assert.False(t, at.Before(began) || at.After(time.Now()), "%s: %v, begun at %v", graph, at, began)
	}
	open(map[string]int{"asker": 1}, "asker", "nobody's")
	stop()
	assert.Equal(t, oldest, open(map[string]int{"chatting": 2, "asker": 1}), "no worker is asked")

	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Leaders: []superstep.Leader{l}})
	_, err = first.Resume(t.Context(), "an answer")
	require.NoError(t, err)
	left := open(map[string]int{"chatting": 1, "asker": 1})
	assert.False(t, left["chatting"].Before(oldest["chatting"]))
	_, err = second.Resume(t.Context(), "an answer")
	require.NoError(t, err)
	open(map[string]int{"asker": 1})
}
