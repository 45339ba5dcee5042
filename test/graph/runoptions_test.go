package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

func TestRunOptionsThatCannotBeTakenAreRefused(t *testing.T) {
	tests := map[string]struct {
		option superstep.RunOption
		want   string
	}{
		"recursion limit": {superstep.WithRecursionLimit(-1), "the recursion limit -1 is negative"},
		"concurrency":     {superstep.WithMaxConcurrency(-2), "the most tasks at once, -2, is negative"},
		"step timeout":    {superstep.WithStepTimeout(-time.Second), "the step timeout -1s is negative"},
		"durability":      {superstep.WithDurability("later"), `unknown durability "later": there are sync, async and exit`},
		"breakpoint":      {superstep.WithBreakpoints([]string{"aa"}, nil), `the breakpoint at "aa": there is no such node`},
		"after":           {superstep.WithBreakpoints(nil, []string{superstep.Start}), `the breakpoint at "__start__"`},
		"context":         {superstep.WithContext(func() {}), "the run's context does not encode as JSON"},
		"large context":   {superstep.WithContext(strings.Repeat("x", 64<<10)), "the run's context has 65538 bytes, the most is 65536"},
	}
	g := rig.Chain("g", "a", "b").MustCompile()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			th := g.Thread(superstep.NewMemory(), "t")
			err := th.Start(t.Context(), rig.Counter{}, test.option)
			var refused *thread.Error
			require.ErrorAs(t, err, &refused)
			assert.ErrorIs(t, err, thread.ErrBadInput)
			assert.ErrorContains(t, err, test.want)
			assert.Equal(t, "t", refused.Thread)
			_, err = th.Wait(t.Context())
			assert.ErrorIs(t, err, thread.ErrNotFound, "nothing began")
		})
	}
}

func TestBreakpointsOfOneRunReplaceTheGraphs(t *testing.T) {
	g := rig.Chain("g", "a", "b", "c")
	compiled := g.MustCompile(superstep.WithInterruptBefore("b"))
	tests := map[string]struct {
		options []superstep.RunOption
		status  thread.Status
		ran     []string
	}{
		"none given":     {nil, thread.StatusStopped, []string{"a"}},
		"nil keeps":      {[]superstep.RunOption{superstep.WithBreakpoints(nil, nil)}, thread.StatusStopped, []string{"a"}},
		"empty is none":  {[]superstep.RunOption{superstep.WithBreakpoints([]string{}, nil)}, thread.StatusFinished, []string{"a", "b", "c"}},
		"others":         {[]superstep.RunOption{superstep.WithBreakpoints([]string{"c"}, nil)}, thread.StatusStopped, []string{"a", "b"}},
		"after":          {[]superstep.RunOption{superstep.WithBreakpoints([]string{}, []string{"a"})}, thread.StatusStopped, []string{"a"}},
		"all":            {[]superstep.RunOption{superstep.WithBreakpoints([]string{superstep.All}, nil)}, thread.StatusStopped, []string{}},
		"the last wins":  {[]superstep.RunOption{superstep.WithBreakpoints([]string{"b"}, nil), superstep.WithBreakpoints([]string{}, nil)}, thread.StatusFinished, []string{"a", "b", "c"}},
		"nil after list": {[]superstep.RunOption{superstep.WithBreakpoints(nil, []string{"c"})}, thread.StatusStopped, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			th := compiled.Thread(superstep.NewMemory(), "t")
			got, err := th.Invoke(t.Context(), rig.Counter{}, test.options...)
			require.NoError(t, err)
			assert.Equal(t, test.status, got.Status)
			assert.Equal(t, test.ran, got.Output.Log.Get())
			if test.status == thread.StatusFinished {
				return
			}
			got, err = th.Invoke(t.Context(), nil, superstep.WithBreakpoints([]string{}, []string{}))
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, got.Status, "the next run has breakpoints of its own")
			assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
		})
	}
}

func TestARunFromACheckpointRunsWhatCameAfterItAgain(t *testing.T) {
	th := rig.Chain("g", "a", "b", "c").MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	history, err := th.History(t.Context())
	require.NoError(t, err)
	var afterA string
	for _, c := range history {
		if c.Step == 1 {
			afterA = c.Checkpoint
		}
	}
	require.NotEmpty(t, afterA)
	got, err := th.Invoke(t.Context(), nil, superstep.FromCheckpoint(afterA), superstep.WithBreakpoints([]string{"c"}, nil))
	require.NoError(t, err)
	assert.Equal(t, thread.StatusStopped, got.Status)
	assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get(), "c is not part of this branch")
	got, err = th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
	longer, err := th.History(t.Context())
	require.NoError(t, err)
	assert.Greater(t, len(longer), len(history), "the other branch stays")
}

func TestTheMostTasksAtOnceAreBounded(t *testing.T) {
	var now, most atomic.Int64
	g := superstep.NewStateGraph[rig.Counter]("g")
	superstep.AddInputNode(g, "each", func(_ context.Context, i int) (superstep.Command[rig.Counter], error) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		var update rig.Counter
		update.Log.Append(fmt.Sprint(i))
		return superstep.Command[rig.Counter]{Update: update}, nil
	})
	g.AddConditionalEdges(superstep.Start, func(context.Context, rig.Counter) ([]superstep.Target, error) {
		return superstep.SendEach("each", []int{1, 2, 3, 4, 5, 6, 7, 8}), nil
	})
	got, err := g.MustCompile().Invoke(t.Context(), rig.Counter{}, superstep.WithMaxConcurrency(1))
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, got.Output.Log.Get())
	assert.Equal(t, int64(1), most.Load())
}

// What had finished when a superstep ran out of time does not run again.
func TestASuperstepOutOfTimeIsContinued(t *testing.T) {
	var quick, slow atomic.Int64
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("quick", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		quick.Add(1)
		s.Log.Append("quick")
		return s, nil
	})
	g.AddNode("slow", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if slow.Add(1) == 1 {
			<-ctx.Done()
			return s, context.Cause(ctx)
		}
		s.Log.Append("slow")
		return s, nil
	})
	g.AddEdge(superstep.Start, "quick")
	g.AddEdge(superstep.Start, "slow")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{}, superstep.WithStepTimeout(2*time.Second))
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Message, `superstep 1 of graph "g" ran longer than 2s (the run's step timeout)`)
	got, err := th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"quick", "slow"}, got.Output.Log.Get())
	assert.Equal(t, int64(1), quick.Load())
	assert.Equal(t, int64(2), slow.Load())
}

// A node asks its run to stop: what runs ends and is kept, and the run goes on without input.
func TestANodeMayDrainItsRun(t *testing.T) {
	g := superstep.NewStateGraph[rig.Counter]("drained")
	g.AddNode("asks", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		superstep.Drain(ctx, "the night begins")
		s.Log.Append("asked")
		return s, nil
	})
	g.AddNode("beside", rig.Appending("beside"))
	g.AddNode("after", rig.Appending("after"))
	g.AddEdge(superstep.Start, "asks")
	g.AddEdge(superstep.Start, "beside")
	g.AddEdge("asks", "after")
	compiled := g.MustCompile()
	th := compiled.Thread(graphtest.Temporal(t, compiled), graphtest.ThreadID(t))
	got, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	assert.Equal(t, thread.StatusStopped, got.Status)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"asked", "beside"}, state.State.Log.Get())
	got, err = th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{"asked", "beside", "after"}, got.Output.Log.Get(), "nothing ran twice")
	superstep.Drain(t.Context(), "outside a node it does nothing")
}
