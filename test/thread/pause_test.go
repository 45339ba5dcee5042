package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// heldChain is a chain a → b whose first node waits to be let go, and then has some work to do.
func heldChain(name string) (b *superstep.StateGraph[rig.Counter], started, release chan struct{}) {
	started, release = make(chan struct{}, 1), make(chan struct{})
	b = superstep.NewStateGraph[rig.Counter](name)
	b.AddNode("a", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		work()
		s.Log.Append("a")
		return s, ctx.Err()
	})
	b.AddNode("b", rig.Appending("b"))
	b.AddEdge(superstep.Start, "a")
	b.AddEdge("a", "b")
	return b, started, release
}

// work takes longer than a segment goes without asking the server whether it is to leave.
func work() { <-time.After(150 * time.Millisecond) }

// TestAPausedRunStartsNothing: what was under way ends and is kept, and the rest comes when it is let go on.
func TestAPausedRunStartsNothing(t *testing.T) {
	t.Parallel()
	g, started, release := heldChain("paused")
	rig.InModes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.NoError(t, th.Start(t.Context(), rig.Counter{}))
		<-started
		require.NoError(t, th.Pause(t.Context(), "the books are closed"))
		require.NoError(t, th.Pause(t.Context(), "again"))
		release <- struct{}{}
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusPaused, got.Status)
		assert.Equal(t, "the books are closed", got.Paused.Reason)
		assert.False(t, got.Paused.At.IsZero())
		assert.Equal(t, []string{"a"}, got.Output.Log.Get())
		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusPaused, state.Status)
		assert.Equal(t, []string{"b"}, state.Next)
		require.ErrorIs(t, th.Start(t.Context(), nil), thread.ErrRunning)
		require.NoError(t, th.Unpause(t.Context()))
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Nil(t, got.Paused)
		assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get())
		require.NoError(t, th.Pause(t.Context(), "too late"), "a run that is over stays as it is")
		require.NoError(t, th.Unpause(t.Context()))
	})
}

// TestAPausedRunTakesAnswers, and goes on with them when it is let.
func TestAPausedRunTakesAnswers(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("paused-asks")
	b.AddNode("ask", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		word, err := superstep.Interrupt[string](ctx, "which word?")
		if err == nil {
			s.Log.Append(word)
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "ask")
	rig.InModes(t, b, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		assert.Equal(t, thread.StatusWaiting, rig.Invoke(t, th, rig.Counter{}).Status)
		require.NoError(t, th.Pause(t.Context(), ""))
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusPaused, got.Status)
		require.Len(t, got.Questions, 1)
		if c, is := rt.(*superstep.Client); is {
			reply, err := c.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID(), Value: []byte(`"yes"`)})
			require.NoError(t, err)
			assert.True(t, reply.Paused, "who answers is told that nothing goes on with it")
		} else {
			_, err = th.Resume(t.Context(), "yes")
			require.NoError(t, err)
		}
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusPaused, got.Status)
		assert.Empty(t, got.Questions)
		_, err = th.Resume(t.Context(), "no")
		require.ErrorIs(t, err, thread.ErrAnswerRefused)
		require.NoError(t, th.Unpause(t.Context()))
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, []string{"yes"}, got.Output.Log.Get())
	})
}

// TestAPausedRunIsUpdatedAndCancelled: it is held in the middle of a superstep, which an update drops.
func TestAPausedRunIsUpdatedAndCancelled(t *testing.T) {
	t.Parallel()
	g, started, release := heldChain("paused-updated")
	rig.InModes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.NoError(t, th.Start(t.Context(), rig.Counter{}))
		<-started
		require.NoError(t, th.Pause(t.Context(), ""))
		release <- struct{}{}
		_, err := th.Wait(t.Context())
		require.NoError(t, err)
		state, err := th.Update(t.Context(), rig.Wrote("by hand"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, thread.StatusPaused, state.Status)
		assert.Equal(t, []string{"a", "by hand"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next)
		require.NoError(t, th.Unpause(t.Context()))
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusStopped, got.Status, "an update runs nothing")
		require.NoError(t, th.Pause(t.Context(), ""))
		require.NoError(t, th.Cancel(t.Context(), "enough"))
		_, err = th.Wait(t.Context())
		var run *superstep.RunError
		require.ErrorAs(t, err, &run)
		assert.Equal(t, thread.StatusCancelled, run.Status)
		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status, "a new run is not paused")
		assert.Equal(t, []string{"a", "by hand", "b"}, got.Output.Log.Get())
	})
}

// TestAPausedRunIsCancelledInItsSuperstep, and goes on where it stood.
func TestAPausedRunIsCancelledInItsSuperstep(t *testing.T) {
	t.Parallel()
	g, started, release := heldChain("paused-cancelled")
	rig.InModes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.NoError(t, th.Start(t.Context(), rig.Counter{}))
		<-started
		require.NoError(t, th.Pause(t.Context(), ""))
		release <- struct{}{}
		_, err := th.Wait(t.Context())
		require.NoError(t, err)
		require.NoError(t, th.Cancel(t.Context(), "enough"))
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get())
	})
}

func TestDrainedRunsGoOn(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 1), make(chan struct{})
	g := superstep.NewStateGraph[rig.Counter]("drained")
	g.AddNode("a", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		work()
		s.Log.Append("a")
		return s, ctx.Err()
	})
	g.AddNode("b", rig.Appending("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	rig.InModes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.NoError(t, th.Start(t.Context(), rig.Counter{}))
		<-started
		_, err := th.Update(t.Context(), rig.Wrote("x"))
		require.ErrorIs(t, err, thread.ErrRunning)
		require.ErrorIs(t, th.Start(t.Context(), nil), thread.ErrRunning)
		require.NoError(t, th.Drain(t.Context(), "deploy"))
		release <- struct{}{}
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusStopped, got.Status)
		assert.Equal(t, "deploy", got.Drained)
		assert.Equal(t, []string{"a"}, got.Output.Log.Get())
		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusStopped, state.Status)
		assert.Equal(t, []string{"a"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next)
		got = rig.Invoke(t, th, nil)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Empty(t, got.Drained)
		assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get())
		require.NoError(t, th.Drain(t.Context(), "again"))
		assert.Equal(t, thread.StatusFinished, rig.Invoke(t, th, nil).Status, "there was nothing to stop")
	})
}
