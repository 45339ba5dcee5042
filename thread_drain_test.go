package superstep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

func TestDrainedRunsGoOn(t *testing.T) {
	started, release := make(chan struct{}, 1), make(chan struct{})
	g := superstep.NewStateGraph[counter]("drained")
	g.AddNode("a", func(ctx context.Context, s counter) (counter, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		work()
		s.Log.Append("a")
		return s, ctx.Err()
	})
	g.AddNode("b", appending("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	inModes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		require.NoError(t, th.Start(t.Context(), counter{}))
		<-started
		_, err := th.Update(t.Context(), wrote("x"))
		require.ErrorIs(t, err, superstep.ErrRunning)
		require.ErrorIs(t, th.Start(t.Context(), nil), superstep.ErrRunning)
		require.NoError(t, th.Drain(t.Context(), "deploy"))
		release <- struct{}{}
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusStopped, got.Status)
		assert.Equal(t, "deploy", got.Drained)
		assert.Equal(t, []string{"a"}, got.Output.Log.Get())
		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusStopped, state.Status)
		assert.Equal(t, []string{"a"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next)
		got = invoke(t, th, nil)
		assert.Equal(t, superstep.StatusFinished, got.Status)
		assert.Empty(t, got.Drained)
		assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get())
		require.NoError(t, th.Drain(t.Context(), "again"))
		assert.Equal(t, superstep.StatusFinished, invoke(t, th, nil).Status, "there was nothing to stop")
	})
}
