package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// TestAnErasureEndsWhatAJobHasLeft: an attempt that is open while its job has ended is told to end as well.
func TestAnErasureEndsWhatAJobHasLeft(t *testing.T) {
	t.Parallel()
	s := newSteered(t)
	id := s.submit(job.Job{Goal: "go"})
	answer, err := s.JobAnswer(t.Context(), id)
	require.NoError(t, err)
	graph, left := answer.View.Experts[0].Graph, job.AttemptThread(id, "p1-2", 7)
	_, err = s.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: left, TaskQueue: s.Queue, Memo: map[string]any{protocol.MemoGraph: graph}},
		protocol.GraphWorkflow, protocol.GraphInput{Graph: graph, Expert: true, Input: protocol.Input{Value: pregel.Value(`{"goal":"ask"}`)}})
	require.NoError(t, err)
	waits, err := s.Wait(t.Context(), left)
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, waits.Status)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the index is a moment behind
		listed, err := s.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowId = '" + left + "'"})
		assert.NoError(c, err)
		assert.Len(c, listed.GetExecutions(), 1)
	}, time.Minute, 50*time.Millisecond)
	_, err = s.Erase(t.Context(), thread.EraseRequest{Thread: job.WorkflowID(id)})
	require.ErrorIs(t, err, thread.ErrRunning)
	proof, err := s.Erase(t.Context(), thread.EraseRequest{Thread: job.WorkflowID(id), Cancel: true})
	require.NoError(t, err)
	require.Contains(t, proof.Threads, left)

	var refused *thread.Error
	_, err = s.Erase(t.Context(), thread.EraseRequest{Thread: left})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{"erase", job.WorkflowID(id), "--yes"}, refused.Command)
}
