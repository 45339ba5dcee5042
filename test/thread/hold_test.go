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

// holding is a graph whose second superstep has a node that works and one that fails while broken is true.
type holding struct {
	graph         *superstep.Graph[rig.Counter]
	broken        atomic.Bool
	worked, tried atomic.Int32
}

func newHolding(name string) *holding {
	h := &holding{}
	b := superstep.NewStateGraph[rig.Counter](name)
	b.AddNode("first", rig.Appending("first"))
	b.AddNode("works", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		h.worked.Add(1)
		return rig.Appending("works")(ctx, s)
	})
	b.AddNode("fails", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		h.tried.Add(1)
		if h.broken.Load() {
			return s, errors.New("the bank is closed")
		}
		return rig.Appending("mended")(ctx, s)
	})
	b.AddEdge(superstep.Start, "first")
	b.AddEdge("first", "works")
	b.AddEdge("first", "fails")
	h.graph = b.MustCompile()
	return h
}

// fails runs a thread to its failure, anew.
func (h *holding) Fails(t *testing.T, th *superstep.Thread[rig.Counter], opts ...superstep.RunOption) {
	t.Helper()
	h.broken.Store(true)
	h.worked.Store(0)
	h.tried.Store(0)
	_, err := th.Invoke(t.Context(), rig.Counter{}, opts...)
	h.failed(t, err)
}

func (h *holding) failed(t *testing.T, err error) {
	t.Helper()
	var run *superstep.RunError
	require.ErrorAs(t, err, &run)
	assert.Equal(t, thread.StatusFailed, run.Status)
	assert.Contains(t, run.Message, "the bank is closed")
	var node *superstep.NodeError
	require.ErrorAs(t, err, &node)
	assert.Equal(t, "fails", node.Node)
}

// runID is the id of the thread's run on a server, "" in memory, where runs are no executions.
func runID(t *testing.T, rt superstep.Runtime, thread string) string {
	t.Helper()
	c, ok := rt.(*superstep.Client)
	if !ok {
		return ""
	}
	view, err := c.Show(t.Context(), thread)
	require.NoError(t, err)
	return view.RunID
}

// TestAHeldRunIsRetried as often as it takes, in one run, and what had finished does not run again.
func TestAHeldRunIsRetried(t *testing.T) {
	t.Parallel()
	for mode, opts := range map[string][]superstep.RunOption{
		"sync": nil, "fused": {superstep.WithFused()}, "async": {superstep.WithDurability(superstep.DurabilityAsync)},
		"exit": {superstep.WithDurability(superstep.DurabilityExit)},
	} {
		t.Run(mode, func(t *testing.T) {
			h := newHolding("held-" + mode)
			rig.OnRuntimes(t, h.graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
				h.Fails(t, th, append(opts, superstep.WithHold())...)
				first := runID(t, rt, th.ID())
				state, err := th.State(t.Context())
				require.NoError(t, err)
				assert.Equal(t, thread.StatusFailed, state.Status)
				_, err = th.Retry(t.Context())
				h.failed(t, err)
				require.NoError(t, th.Pause(t.Context(), "wait for the bank"))
				got, err := th.Wait(t.Context())
				require.NoError(t, err)
				assert.Equal(t, thread.StatusPaused, got.Status)
				_, err = th.Retry(t.Context())
				require.ErrorIs(t, err, thread.ErrRunning)
				require.NoError(t, th.Unpause(t.Context()))
				_, err = th.Wait(t.Context())
				h.failed(t, err)
				h.broken.Store(false)
				got, err = th.Retry(t.Context())
				require.NoError(t, err)
				assert.Equal(t, thread.StatusFinished, got.Status)
				assert.ElementsMatch(t, []string{"first", "works", "mended"}, got.Output.Log.Get())
				assert.EqualValues(t, 1, h.worked.Load(), "what finished ran again")
				assert.EqualValues(t, 3, h.tried.Load())
				assert.Equal(t, first, runID(t, rt, th.ID()), "it went on in another run")
				_, err = th.Retry(t.Context())
				require.ErrorIs(t, err, thread.ErrNotFailed)
			})
		})
	}
}

// TestAHeldRunTakesSomethingElseToDo: new input, or an update, after which nothing is left to retry.
func TestAHeldRunTakesSomethingElseToDo(t *testing.T) {
	t.Parallel()
	h := newHolding("held-else")
	rig.OnRuntimes(t, h.graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		h.Fails(t, th, superstep.WithHold())
		first := runID(t, rt, th.ID())
		_, err := th.Invoke(t.Context(), rig.Wrote("anew"), superstep.WithHold())
		h.failed(t, err)
		state, err := th.Update(t.Context(), rig.Wrote("by hand"), superstep.AsNode("first"))
		require.NoError(t, err)
		assert.Equal(t, thread.StatusStopped, state.Status)
		_, err = th.Retry(t.Context())
		require.ErrorIs(t, err, thread.ErrNotFailed)
		h.broken.Store(false)
		got, err := th.Invoke(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Contains(t, got.Output.Log.Get(), "by hand")
		assert.Equal(t, first, runID(t, rt, th.ID()), "it went on in another run")
	})
}

// TestAHeldRunIsCancelled, and a retry of that goes on all the same. The next run is held only when it is told to be.
func TestAHeldRunIsCancelled(t *testing.T) {
	t.Parallel()
	h := newHolding("held-cancelled")
	rig.OnRuntimes(t, h.graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		h.Fails(t, th, superstep.WithHold())
		_, err := th.SendEvent(t.Context(), "kept", "for later")
		require.NoError(t, err)
		require.NoError(t, th.Cancel(t.Context(), "enough"))
		_, err = th.Wait(t.Context())
		var run *superstep.RunError
		require.ErrorAs(t, err, &run)
		assert.Equal(t, thread.StatusCancelled, run.Status)
		h.broken.Store(false)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.EqualValues(t, 1, h.worked.Load(), "what finished ran again")
		h.Fails(t, th)
		_, err = th.SendEvent(t.Context(), "kept", "too late")
		require.ErrorIs(t, err, thread.ErrAnswerRefused, "it failed for good")
	})
}

// TestARetryKeepsTheSettingsOfItsRun, whether the run was the thread's first or one that it went on with.
func TestARetryKeepsTheSettingsOfItsRun(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	g := superstep.NewStateGraph[rig.Counter]("settled")
	g.AddNode("a", rig.Appending("a"))
	g.AddNode("b", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if broken.Load() {
			return s, errors.New("broken")
		}
		who, err := superstep.RunContext[string](ctx)
		s.Log.Append("b for " + who)
		return s, err
	})
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	rig.OnRuntimes(t, g.MustCompile(superstep.WithInterruptBefore("b")), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		broken.Store(true)
		_, err := th.Invoke(t.Context(), rig.Counter{}, superstep.WithContext("ann"), superstep.WithBreakpoints([]string{}, []string{"b"}))
		require.Error(t, err, "the graph's own breakpoint does not hold it")
		broken.Store(false)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b for ann"}, got.Output.Log.Get())
		assert.Equal(t, thread.StatusStopped, got.Status, "the run's breakpoint after b")

		got = rig.Invoke(t, th, rig.Counter{})
		require.Equal(t, thread.StatusStopped, got.Status, "the graph's breakpoint before b, without the run's settings")
		broken.Store(true)
		_, err = th.Invoke(t.Context(), nil, superstep.WithContext("bob"))
		require.Error(t, err)
		broken.Store(false)
		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b for ann", "a", "b for bob"}, got.Output.Log.Get())
	})
}
