package superstep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

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
	s := newServer(t)
	s.work(g)
	start := func(goal string) (client.WorkflowRun, string) {
		thread := s.queue + "-" + goal
		run, err := s.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: thread, TaskQueue: s.queue, Memo: map[string]any{protocol.MemoGraph: "expert"}},
			protocol.GraphWorkflow, protocol.GraphInput{Graph: "expert", Expert: true, Input: protocol.Input{Value: pregel.Value(`{"goal":"` + goal + `"}`)}})
		require.NoError(t, err)
		return run, thread
	}
	run, thread := start("work")
	var result protocol.GraphResult
	require.NoError(t, run.Get(t.Context(), &result))
	assert.Equal(t, "done: work", result.Message.Output)
	assert.Equal(t, thread, result.Message.Stored.Thread)
	assert.Nil(t, result.State, "its leader gets no state")
	view, err := s.Show(t.Context(), thread)
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, view.Status)
	assert.Contains(t, string(view.Output[pregel.FunctionOutput]), "done: work")

	run, thread = start("fail")
	require.Error(t, run.Get(t.Context(), nil))
	view, err = s.Show(t.Context(), thread)
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFailed, view.Status)
	assert.Contains(t, view.Failure.Message, "no luck")
	_, err = s.Retry(t.Context(), thread)
	require.NoError(t, err)
	view, err = s.Wait(t.Context(), thread)
	require.NoError(t, err)
	assert.Contains(t, string(view.Output[pregel.FunctionOutput]), "done: fail")
}
