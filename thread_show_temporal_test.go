package superstep_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"superstep.dev"
)

// TestShowWithoutAWorker: what a run waits for, and what it did outside, is in its history.
func TestShowWithoutAWorker(t *testing.T) {
	r, s := undoable(false), newServer(t)
	stop := s.work(r.graph)
	th := r.waits(t, s.Client)
	require.NoError(t, ignoreReply(s.Pause(t.Context(), superstep.PauseRequest{Thread: th.ID(), By: "ann", Reason: "lunch"})))
	asked, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	require.Len(t, asked.Questions, 1)
	require.Len(t, asked.Effects, 1)
	stop()
	told, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Contains(t, told.Problem, "no worker")
	told.Problem = ""
	assert.Equal(t, asked.Questions, told.Questions)
	assert.Equal(t, asked.Effects, told.Effects)
	assert.Equal(t, []any{asked.Status, asked.Step, asked.Nodes, asked.Durability, asked.Output},
		[]any{told.Status, told.Step, told.Nodes, told.Durability, told.Output})
	assert.Equal(t, "lunch", told.Paused.Reason)
}

func ignoreReply[T any](_ T, err error) error { return err }

// TestTemporalsOwnScreens: the server's UI and CLI, which know no graphs, say which graph a run is of, where the run
// stands and what the run asks. The second run of a thread is started in another way than the first.
func TestTemporalsOwnScreens(t *testing.T) {
	r, s := undoable(false), newServer(t)
	s.work(r.graph)
	th := r.waits(t, s.Client)
	r.ownScreensSay(t, s, th.ID(), "**waiting**", "` go on? `", "~~~text\nSTART → first → second → third\n~~~")
	_, err := s.CancelWith(t.Context(), superstep.CancelRequest{Thread: th.ID(), Mode: superstep.CancelKeep})
	require.NoError(t, err)
	_, err = th.Wait(t.Context())
	require.Error(t, err)
	_, err = th.Retry(t.Context())
	require.NoError(t, err)
	r.ownScreensSay(t, s, th.ID(), "**waiting**", "` go on? `")
}

func (r undoRig) ownScreensSay(t *testing.T, s *server, thread string, details ...string) {
	t.Helper()
	described, err := s.temporal.DescribeWorkflow(t.Context(), thread, "")
	require.NoError(t, err)
	summary, err := described.GetStaticSummary()
	require.NoError(t, err)
	assert.Equal(t, "graph undoable", summary)
	value, err := s.temporal.QueryWorkflow(t.Context(), thread, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	for _, want := range details {
		assert.Contains(t, metadata.GetCurrentDetails(), want)
	}
}

// TestAHintNamesTheRunsQueue: a client of another task queue shows a run whose workers are gone.
func TestAHintNamesTheRunsQueue(t *testing.T) {
	r, s := undoable(false), newServer(t)
	stop := s.work(r.graph)
	th := r.waits(t, s.Client)
	stop()
	elsewhere, err := superstep.NewClient(s.temporal, superstep.ClientConfig{TaskQueue: s.queue + "-elsewhere"})
	require.NoError(t, err)
	shown, err := elsewhere.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, `no worker answers on task queue "`+s.queue+`". Start one that serves the graph "undoable"`, shown.Problem)
}
