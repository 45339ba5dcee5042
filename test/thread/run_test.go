package thread_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

func TestThreadsRememberTheirState(t *testing.T) {
	t.Parallel()
	rt := superstep.NewMemory()
	g := rig.Chain("g", "a").MustCompile()
	th := g.Thread(rt, "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	got, err := g.Thread(rt, "t").Invoke(t.Context(), map[string]any{"log": []string{"again"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "again", "a"}, got.Output.Log.Get())

	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, state.Status)
	assert.Equal(t, []string{"a", "again", "a"}, state.State.Log.Get())
	assert.Empty(t, state.Next)

	history, err := th.History(t.Context())
	require.NoError(t, err)
	require.Len(t, history, 6)
	assert.Equal(t, []string{"a"}, history[0].Ran)
	assert.Equal(t, []string{"log"}, history[0].Wrote)
	assert.Equal(t, []string{"a"}, history[1].Next)
	assert.Empty(t, history[1].Ran)
	assert.Equal(t, "input", history[2].Source)

	past, err := th.State(t.Context(), superstep.AtCheckpoint(history[3].Checkpoint))
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, past.State.Log.Get())
	_, err = th.State(t.Context(), superstep.AtCheckpoint("nowhere"))
	assert.ErrorIs(t, err, thread.ErrNotFound)
	assert.Equal(t, "t", th.ID())
	assert.Equal(t, "g/t", th.String())
}

func TestGoingOnWithoutAnythingToDoRunsNothing(t *testing.T) {
	t.Parallel()
	th := rig.Chain("g", "a").MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	got, err := th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{"a"}, got.Output.Log.Get())
}

func TestThreadsThatDoNotExistAreNotFound(t *testing.T) {
	t.Parallel()
	rt := superstep.NewMemory()
	th := rig.Chain("g", "a").MustCompile().Thread(rt, "t")
	_, err := th.Wait(t.Context())
	assert.ErrorIs(t, err, thread.ErrNotFound)
	_, err = th.State(t.Context())
	assert.ErrorIs(t, err, thread.ErrNotFound)
	_, err = th.History(t.Context())
	assert.ErrorIs(t, err, thread.ErrNotFound)
	_, err = th.Resume(t.Context(), true)
	assert.ErrorIs(t, err, thread.ErrNotFound)
	_, err = th.Retry(t.Context())
	assert.ErrorIs(t, err, thread.ErrNotFound)
	assert.ErrorIs(t, th.Cancel(t.Context(), ""), thread.ErrNotFound)
	_, err = th.Invoke(t.Context(), nil)
	assert.ErrorIs(t, err, thread.ErrNotFound)

	_, err = th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	_, err = rig.Chain("other", "a").MustCompile().Thread(rt, "t").Invoke(t.Context(), rig.Counter{})
	assert.ErrorIs(t, err, thread.ErrBadInput)
	assert.ErrorContains(t, err, `thread "t" belongs to graph "g", not to "other"`)
	_, err = rig.Chain("g", "a", "b").MustCompile().Thread(rt, "t").Invoke(t.Context(), rig.Counter{})
	assert.ErrorIs(t, err, thread.ErrBadInput)
	assert.ErrorContains(t, err, `thread "t" began with another version of graph "g"`)
	_, err = rig.Chain("g", "a").MustCompile().Thread(rt, "").Invoke(t.Context(), rig.Counter{})
	assert.ErrorIs(t, err, thread.ErrBadInput)
}

func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("a", rig.Asking("a"))
	g.AddNode("b", rig.Asking("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge(superstep.Start, "b")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")

	got, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, got.Status)
	require.Len(t, got.Questions, 2)
	assert.Equal(t, "a", got.Questions[0].Node)
	assert.Equal(t, 1, got.Questions[0].Step)
	assert.JSONEq(t, `"really a?"`, string(got.Questions[0].Value))

	_, err = th.Resume(t.Context(), true)
	require.ErrorIs(t, err, thread.ErrBadInput)
	assert.ErrorContains(t, err, "several questions are open")
	_, err = th.ResumeByID(t.Context(), map[string]any{"nobody": true})
	assert.ErrorIs(t, err, thread.ErrNotFound)
	_, err = th.ResumeByID(t.Context(), map[string]any{})
	assert.ErrorIs(t, err, thread.ErrBadInput)
	_, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID: true, got.Questions[1].ID: "maybe"})
	require.ErrorIs(t, err, thread.ErrBadInput, "the second does not fit, so neither is taken")

	got, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[1].ID: false})
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, state.Status)
	require.Len(t, state.Questions, 1)

	got, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{"a true", "b false"}, got.Output.Log.Get())
	_, err = th.Resume(t.Context(), true)
	assert.ErrorIs(t, err, thread.ErrAnswerRefused)
}

func TestQuestionsOfSubgraphsNameTheInnerNode(t *testing.T) {
	t.Parallel()
	sub := superstep.NewStateGraph[rig.Counter]("sub")
	sub.AddNode("inner", rig.Asking("inner"))
	sub.AddEdge(superstep.Start, "inner")
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddSubgraph("outer", sub.MustCompile())
	g.AddEdge(superstep.Start, "outer")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	got, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	assert.Equal(t, "inner", got.Questions[0].Node)
	got, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID[:len(got.Questions[0].ID)-1]: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"inner true"}, got.Output.Log.Get())
}

func TestBreakpointsStopTheRun(t *testing.T) {
	t.Parallel()
	g, err := rig.Chain("g", "a", "b", "c").Compile(superstep.WithInterruptBefore("b"))
	require.NoError(t, err)
	th := g.Thread(superstep.NewMemory(), "t")
	got, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	assert.Equal(t, thread.StatusStopped, got.Status)
	assert.Equal(t, []string{"a"}, got.Output.Log.Get())
	got, err = th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
}

func TestFailedRunsAreRetriedFromWhereTheyFailed(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	var ran atomic.Int32
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("a", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		ran.Add(1)
		s.Log.Append("a")
		return s, nil
	})
	g.AddNode("b", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		if broken.Load() {
			return s, errors.New("no connection")
		}
		s.Log.Append("b")
		return s, nil
	})
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "b", failed.Node)
	assert.Equal(t, "t", failed.Thread)
	assert.ErrorContains(t, err, `the run of graph "g" on thread "t" failed: node b of graph g: no connection`)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFailed, state.Status)

	broken.Store(false)
	got, err := th.Retry(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get())
	assert.Equal(t, int32(1), ran.Load())
	_, err = th.Retry(t.Context())
	assert.ErrorIs(t, err, thread.ErrNotFailed)
}

func TestRunsAreCancelled(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("slow", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		close(started)
		<-ctx.Done()
		return s, context.Cause(ctx)
	})
	g.AddEdge(superstep.Start, "slow")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	<-started
	assert.ErrorIs(t, th.Start(t.Context(), rig.Counter{}), thread.ErrRunning)
	_, err := th.Retry(t.Context())
	assert.ErrorIs(t, err, thread.ErrRunning)

	short, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = th.Wait(short)
	assert.ErrorIs(t, err, context.Canceled, "the end of the caller's context ends the waiting, not the run")

	require.NoError(t, th.Cancel(t.Context(), "no longer needed"))
	got, err := th.Wait(t.Context())
	var cancelled *superstep.RunError
	require.ErrorAs(t, err, &cancelled)
	assert.Equal(t, thread.StatusCancelled, cancelled.Status)
	assert.Equal(t, thread.StatusCancelled, got.Status)
	assert.ErrorContains(t, err, `the run of graph "g" on thread "t" was cancelled: no longer needed`)
	require.NoError(t, th.Cancel(t.Context(), "again"), "a run that ended stays as it is")
	_, err = th.Wait(t.Context())
	assert.ErrorContains(t, err, "no longer needed")
}

func TestWaitingRunsAreCancelled(t *testing.T) {
	t.Parallel()
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("a", rig.Asking("a"))
	g.AddEdge(superstep.Start, "a")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	require.NoError(t, th.Cancel(t.Context(), "late"))
	_, err = th.Resume(t.Context(), true)
	assert.ErrorIs(t, err, thread.ErrAnswerRefused)
	got, err := th.Retry(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, got.Status, "the question is asked again")
}
