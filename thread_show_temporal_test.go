package superstep_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
