package superstep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// A node asks its run to stop: what runs ends and is kept, and the run goes on without input.
func TestANodeMayDrainItsRun(t *testing.T) {
	g := superstep.NewStateGraph[counter]("drained")
	g.AddNode("asks", func(ctx context.Context, s counter) (counter, error) {
		superstep.Drain(ctx, "the night begins")
		s.Log.Append("asked")
		return s, nil
	})
	g.AddNode("beside", appending("beside"))
	g.AddNode("after", appending("after"))
	g.AddEdge(superstep.Start, "asks")
	g.AddEdge(superstep.Start, "beside")
	g.AddEdge("asks", "after")
	compiled := g.MustCompile()
	th := compiled.Thread(graphtest.Temporal(t, compiled), graphtest.ThreadID(t))
	got, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusStopped, got.Status)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"asked", "beside"}, state.State.Log.Get())
	got, err = th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, got.Status)
	assert.Equal(t, []string{"asked", "beside", "after"}, got.Output.Log.Get(), "nothing ran twice")
	superstep.Drain(t.Context(), "outside a node it does nothing")
}
