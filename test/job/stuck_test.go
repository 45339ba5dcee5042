package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// TestAJobThatNoWorkerCanGoOnWith: why its workflow task fails is said at once, not where a job cannot be looked at.
func TestAJobThatNoWorkerCanGoOnWith(t *testing.T) {
	s := newSteered(t)
	id := "j" + testserver.Queue(t)
	_, err := s.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: job.WorkflowID(id), TaskQueue: s.Queue, Memo: map[string]any{protocol.MemoGraph: "gone"}},
		protocol.LeaderWorkflow, protocol.LeaderInput{Leader: "gone", Job: job.Job{ID: id, Goal: "go"}})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, ask := range []func() error{
			func() error { _, err := s.Job(t.Context(), id); return err },
			func() error { _, err := s.RetrySubJob(t.Context(), id, "p1-1", ""); return err },
		} {
			var e *thread.Error
			if err := ask(); assert.ErrorAs(c, err, &e) {
				assert.Contains(c, e.Message, `this worker does not serve the leader "gone"`)
				assert.Equal(c, []string{"worker"}, e.Command)
			}
		}
	}, 2*time.Minute, 100*time.Millisecond)
	require.NoError(t, s.Temporal.TerminateWorkflow(t.Context(), job.WorkflowID(id), "", "the test is over"))
}
