package thread_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestACopyOfAThread: it stands where the thread stood, with its history and its question, and each goes on by itself.
func TestACopyOfAThread(t *testing.T) {
	t.Parallel()
	var begun atomic.Int32
	b := superstep.NewStateGraph[rig.Counter]("copied")
	b.AddNode("a", rig.Appending("a"))
	b.AddNode("ask", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if _, err := superstep.Task(ctx, "begun", func(context.Context) (int32, error) { return begun.Add(1), nil }); err != nil {
			return s, err
		}
		word, err := superstep.Interrupt[string](ctx, "What?")
		if err == nil {
			s.Log.Append(word)
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "a")
	b.AddEdge("a", "ask")
	rig.OnRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		begun.Store(0)
		got := rig.Invoke(t, th, rig.Counter{})
		require.Len(t, got.Questions, 1)
		before := rig.HistoryOf(t, th, superstep.WithValues())
		copied, err := th.Copy(t.Context(), graphtest.ThreadID(t))
		require.NoError(t, err)
		assert.Equal(t, before, rig.HistoryOf(t, copied, superstep.WithValues()))
		at, err := copied.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusWaiting, at.Status)
		require.Len(t, at.Questions, 1)
		assert.Equal(t, got.Questions[0].ID, at.Questions[0].ID)

		mine, err := th.Resume(t.Context(), "mine")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "mine"}, mine.Output.Log.Get())
		theirs, err := copied.Resume(t.Context(), "theirs")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "theirs"}, theirs.Output.Log.Get())
		assert.EqualValues(t, 2, begun.Load(), "what a task did outside before it asked is each thread's own")
		after := rig.HistoryOf(t, copied, superstep.WithValues())
		assert.Equal(t, before[1:], after[2:])
		assert.Equal(t, []string{"a"}, rig.LogOf(t, copied, superstep.AtCheckpoint(before[0].Checkpoint)))

		// A thread that has ended is copied, a copy too, and goes on with new input.
		third, err := copied.Copy(t.Context(), graphtest.ThreadID(t))
		require.NoError(t, err)
		assert.Equal(t, rig.HistoryOf(t, copied), rig.HistoryOf(t, third))
		next := rig.Invoke(t, third, rig.Wrote("new"))
		assert.Equal(t, []string{"a", "theirs", "new", "a"}, next.Output.Log.Get())
		assert.Len(t, rig.HistoryOf(t, third), len(after)+3, "the input, its entry, and what a has written")
		_, err = th.Copy(t.Context(), third.ID())
		assert.ErrorIs(t, err, thread.ErrBadInput, "that thread exists already")
		_, err = b.MustCompile().Thread(rt, graphtest.ThreadID(t)).Copy(t.Context(), graphtest.ThreadID(t))
		assert.ErrorIs(t, err, thread.ErrNotFound)
	})
}

// TestACopyOfASubgraph: a subgraph that asks is at the same place in the copy, and goes on there with the answer.
func TestACopyOfASubgraph(t *testing.T) {
	t.Parallel()
	inner := superstep.NewStateGraph[rig.Counter]("inner")
	inner.AddNode("first", rig.Appending("first"))
	inner.AddNode("ask", rig.Asking("what"))
	inner.AddEdge(superstep.Start, "first")
	inner.AddEdge("first", "ask")
	outer := superstep.NewStateGraph[rig.Counter]("around")
	outer.AddSubgraph("inner", inner.MustCompile())
	outer.AddEdge(superstep.Start, "inner")
	rig.InModes(t, outer, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		within := superstep.InSubgraph("inner")
		before, err := th.State(t.Context(), within)
		require.NoError(t, err)
		require.Equal(t, []string{"ask"}, before.Next)
		copied, err := th.Copy(t.Context(), graphtest.ThreadID(t))
		require.NoError(t, err)
		at, err := copied.State(t.Context(), within)
		require.NoError(t, err)
		assert.Equal(t, before.Checkpoint, at.Checkpoint)
		assert.Equal(t, before.Values, at.Values)
		assert.Equal(t, before.Next, at.Next)
		got, err := copied.Resume(t.Context(), false)
		require.NoError(t, err)
		assert.Equal(t, []string{"first", "what false"}, got.Output.Log.Get(), "the inner node before the question did not run again")
		got, err = th.Resume(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, []string{"first", "what true"}, got.Output.Log.Get())
	})
}
