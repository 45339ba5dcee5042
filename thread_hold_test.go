package superstep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// holding is a graph whose second superstep has a node that works and one that fails while broken is true.
type holding struct {
	graph         *superstep.Graph[counter]
	broken        atomic.Bool
	worked, tried atomic.Int32
}

func newHolding(name string) *holding {
	h := &holding{}
	b := superstep.NewStateGraph[counter](name)
	b.AddNode("first", appending("first"))
	b.AddNode("works", func(ctx context.Context, s counter) (counter, error) {
		h.worked.Add(1)
		return appending("works")(ctx, s)
	})
	b.AddNode("fails", func(ctx context.Context, s counter) (counter, error) {
		h.tried.Add(1)
		if h.broken.Load() {
			return s, errors.New("the bank is closed")
		}
		return appending("mended")(ctx, s)
	})
	b.AddEdge(superstep.Start, "first")
	b.AddEdge("first", "works")
	b.AddEdge("first", "fails")
	h.graph = b.MustCompile()
	return h
}

// fails runs a thread to its failure, anew.
func (h *holding) fails(t *testing.T, th *superstep.Thread[counter], opts ...superstep.RunOption) {
	t.Helper()
	h.broken.Store(true)
	h.worked.Store(0)
	h.tried.Store(0)
	_, err := th.Invoke(t.Context(), counter{}, opts...)
	h.failed(t, err)
}

func (h *holding) failed(t *testing.T, err error) {
	t.Helper()
	var run *superstep.RunError
	require.ErrorAs(t, err, &run)
	assert.Equal(t, superstep.StatusFailed, run.Status)
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
	for mode, opts := range map[string][]superstep.RunOption{
		"sync": nil, "fused": {superstep.WithFused()}, "async": {superstep.WithDurability(superstep.DurabilityAsync)},
		"exit": {superstep.WithDurability(superstep.DurabilityExit)},
	} {
		t.Run(mode, func(t *testing.T) {
			h := newHolding("held-" + mode)
			onRuntimes(t, h.graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
				h.fails(t, th, append(opts, superstep.WithHold())...)
				first := runID(t, rt, th.ID())
				state, err := th.State(t.Context())
				require.NoError(t, err)
				assert.Equal(t, superstep.StatusFailed, state.Status)
				_, err = th.Retry(t.Context())
				h.failed(t, err)
				require.NoError(t, th.Pause(t.Context(), "wait for the bank"))
				got, err := th.Wait(t.Context())
				require.NoError(t, err)
				assert.Equal(t, superstep.StatusPaused, got.Status)
				_, err = th.Retry(t.Context())
				require.ErrorIs(t, err, superstep.ErrRunning)
				require.NoError(t, th.Unpause(t.Context()))
				_, err = th.Wait(t.Context())
				h.failed(t, err)
				h.broken.Store(false)
				got, err = th.Retry(t.Context())
				require.NoError(t, err)
				assert.Equal(t, superstep.StatusFinished, got.Status)
				assert.ElementsMatch(t, []string{"first", "works", "mended"}, got.Output.Log.Get())
				assert.EqualValues(t, 1, h.worked.Load(), "what finished ran again")
				assert.EqualValues(t, 3, h.tried.Load())
				assert.Equal(t, first, runID(t, rt, th.ID()), "it went on in another run")
				_, err = th.Retry(t.Context())
				require.ErrorIs(t, err, superstep.ErrNotFailed)
			})
		})
	}
}

// TestAHeldRunTakesSomethingElseToDo: new input, or an update, after which nothing is left to retry.
func TestAHeldRunTakesSomethingElseToDo(t *testing.T) {
	h := newHolding("held-else")
	onRuntimes(t, h.graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		h.fails(t, th, superstep.WithHold())
		first := runID(t, rt, th.ID())
		_, err := th.Invoke(t.Context(), wrote("anew"), superstep.WithHold())
		h.failed(t, err)
		state, err := th.Update(t.Context(), wrote("by hand"), superstep.AsNode("first"))
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusStopped, state.Status)
		_, err = th.Retry(t.Context())
		require.ErrorIs(t, err, superstep.ErrNotFailed)
		h.broken.Store(false)
		got, err := th.Invoke(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusFinished, got.Status)
		assert.Contains(t, got.Output.Log.Get(), "by hand")
		assert.Equal(t, first, runID(t, rt, th.ID()), "it went on in another run")
	})
}

// TestAHeldRunIsCancelled, and a retry of that goes on all the same. The next run is held only when it is told to be.
func TestAHeldRunIsCancelled(t *testing.T) {
	h := newHolding("held-cancelled")
	onRuntimes(t, h.graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		h.fails(t, th, superstep.WithHold())
		_, err := th.SendEvent(t.Context(), "kept", "for later")
		require.NoError(t, err)
		require.NoError(t, th.Cancel(t.Context(), "enough"))
		_, err = th.Wait(t.Context())
		var run *superstep.RunError
		require.ErrorAs(t, err, &run)
		assert.Equal(t, superstep.StatusCancelled, run.Status)
		h.broken.Store(false)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusFinished, got.Status)
		assert.EqualValues(t, 1, h.worked.Load(), "what finished ran again")
		h.fails(t, th)
		_, err = th.SendEvent(t.Context(), "kept", "too late")
		require.ErrorIs(t, err, superstep.ErrAnswerRefused, "it failed for good")
	})
}
