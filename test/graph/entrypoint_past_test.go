package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

func TestEntrypointStateHistoryUpdateAndFork(t *testing.T) {
	g := adder()
	rig.OnRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[int]) {
		entrypointRuns(t, th, 1)
		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1_001, state.State)
		assert.Empty(t, state.Next)
		assert.JSONEq(t, `1001`, string(state.Values["previous"]))

		past, err := th.History(t.Context())
		require.NoError(t, err)
		require.Len(t, past, 3)
		assert.Equal(t, []string{"adder"}, past[1].Next)

		state, err = th.Update(t.Context(), 7)
		require.NoError(t, err)
		assert.Equal(t, 7, state.State)
		_, err = th.Update(t.Context(), "seven")
		require.ErrorIs(t, err, thread.ErrBadInput)
		assert.Equal(t, 10, entrypointRuns(t, th, 3).Output)

		// From the checkpoint before the function ran first: nothing was kept then.
		fork, err := th.Fork(t.Context(), past[1].Checkpoint, graphtest.ThreadID(t)+"-fork")
		require.NoError(t, err)
		got, err := fork.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1_001, got.Output)
		assert.Equal(t, 1_006, entrypointRuns(t, fork, 5).Output)

		// A thread may begin with an update.
		fresh := g.Thread(rt, graphtest.ThreadID(t)+"-fresh")
		_, err = fresh.Update(t.Context(), 20)
		require.NoError(t, err)
		assert.Equal(t, 21, entrypointRuns(t, fresh, 1).Output)
	})
}

func TestAnUpdateEndsWhatAnEntrypointWaitsFor(t *testing.T) {
	g := superstep.NewEntrypoint("updated", func(ctx context.Context, n int) (int, error) {
		if n > 0 {
			return superstep.Interrupt[int](ctx, "?")
		}
		before, _, err := superstep.Previous[int](ctx)
		return before, err
	})
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
		require.Equal(t, thread.StatusWaiting, entrypointRuns(t, th, 1).Status)
		state, err := th.Update(t.Context(), 9)
		require.NoError(t, err)
		assert.Equal(t, 9, state.State)
		assert.Equal(t, thread.StatusFinished, state.Status)
		assert.Equal(t, 9, entrypointRuns(t, th, 0).Output)
	})
}

func TestEntrypointStreamsWhatItReturns(t *testing.T) {
	g := superstep.NewEntrypoint("streamed", func(ctx context.Context, n int) (map[string]int, error) {
		if err := superstep.Emit(ctx, "working"); err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, nil
		}
		yes, err := superstep.Interrupt[bool](ctx, "sure?")
		return map[string]int{"n": n}, errors.Join(err, unless(yes, err))
	})
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[map[string]int]) {
		modes := []superstep.StreamOption{thread.StreamUpdates, thread.StreamValues, thread.StreamCustom}
		require.NoError(t, th.Start(t.Context(), 0))
		assert.Equal(t, []string{`custom "working"`, `updates {"streamed":null}`, `values null`}, streamLines(t, th, modes))
		require.NoError(t, th.Start(t.Context(), 4))
		asked := streamLines(t, th, modes)
		require.Len(t, asked, 3)
		assert.True(t, strings.HasPrefix(asked[2], `values {"__interrupt__":`), asked[2])
		_, err := th.Resume(t.Context(), true)
		require.NoError(t, err)
		all := streamLines(t, th, modes)
		assert.Equal(t, []string{`custom "working"`, `updates {"streamed":{"n":4}}`, `values {"n":4}`}, all[len(all)-3:])
	})
}

func unless(ok bool, err error) error {
	if ok || err != nil {
		return nil
	}
	return errors.New("refused")
}

func streamLines[Out any](t *testing.T, th *superstep.Thread[Out], modes []superstep.StreamOption) []string {
	t.Helper()
	var lines []string
	for part, err := range th.Stream(t.Context(), modes...) {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%s %s", part.Mode, part.Data))
	}
	return lines
}

func TestEntrypointRefusesWhatDoesNotFit(t *testing.T) {
	type order struct {
		ID string `json:"id"`
	}
	g := superstep.NewEntrypoint("strict", func(_ context.Context, o order) (string, error) { return o.ID, nil })
	rig.OnRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[string]) {
		for _, bad := range []any{4, map[string]any{"id": 1}, map[string]any{"idd": "x"}, []byte(`{"id":`), []byte(`null`)} {
			_, err := th.Invoke(t.Context(), bad)
			require.ErrorIs(t, err, thread.ErrBadInput, "%v", bad)
		}
		_, err := th.Invoke(t.Context(), nil)
		require.ErrorIs(t, err, thread.ErrNotFound)
		assert.Equal(t, "o-7", entrypointRuns(t, th, order{"o-7"}).Output)
		_, err = th.Command(t.Context(), superstep.Command[string]{Update: "x"})
		require.ErrorIs(t, err, thread.ErrBadInput)
	})
}

func TestPreviousAndSaveOutsideTheirFunction(t *testing.T) {
	_, _, err := superstep.Previous[int](t.Context())
	require.ErrorIs(t, err, superstep.ErrOutsideEntrypoint)
	require.ErrorIs(t, superstep.Save(t.Context(), 1), superstep.ErrOutsideEntrypoint)

	// A graph that an entrypoint calls is not the entrypoint.
	inner := adder()
	var inside, called error
	g := superstep.NewEntrypoint("outer", func(ctx context.Context, n int) (int, error) {
		got, err := inner.Invoke(ctx, n)
		if err != nil {
			return 0, err
		}
		_, inside = superstep.Task(ctx, "t", func(ctx context.Context) (int, error) { return 0, superstep.Save(ctx, 1) })
		sub := superstep.NewStateGraph[rig.Counter]("inner")
		sub.AddNode("a", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			called = superstep.Save(ctx, 1)
			return s, nil
		})
		sub.AddEdge(superstep.Start, "a")
		_, err = sub.MustCompile().Invoke(ctx, rig.Counter{})
		return got.Output, errors.Join(err, superstep.Save(ctx, "kept"))
	})
	th := g.Thread(superstep.NewMemory(), "t")
	assert.Equal(t, 1_002, entrypointRuns(t, th, 2).Output)
	assert.Equal(t, 1_002, entrypointRuns(t, th, 2).Output, "a graph called from a node remembers nothing")
	require.ErrorContains(t, inside, "inside a Task")
	require.ErrorIs(t, called, superstep.ErrOutsideEntrypoint)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.JSONEq(t, `"kept"`, string(state.Values["previous"]))
}

func TestPreviousOfAnotherType(t *testing.T) {
	g := superstep.NewEntrypoint("typed", func(ctx context.Context, n int) (string, error) {
		_, _, err := superstep.Previous[int](ctx)
		return "text", err
	}, superstep.WithRetry(superstep.RetryPolicy{}))
	th := g.Thread(superstep.NewMemory(), "t")
	entrypointRuns(t, th, 1)
	_, err := th.Invoke(t.Context(), 2)
	require.ErrorContains(t, err, `cannot read field "previous" as int`)
	require.Equal(t, 1, attemptsOf(t, th), "it is final")
}

func TestEntrypointMistakes(t *testing.T) {
	fn := func(context.Context, int) (int, error) { return 0, nil }
	wrong := &superstep.Effect[int, int]{Name: "wrong"}
	for name, c := range map[string]struct {
		build func()
		says  string
	}{
		"name": {func() { superstep.NewEntrypoint("a.b", fn) }, `separates names`},
		"nil":  {func() { superstep.NewEntrypoint[int, int]("e", nil) }, "its function is nil"},
		"channels": {func() {
			superstep.NewEntrypoint("e", func(context.Context, rig.Counter) (int, error) { return 0, nil })
		}, "a struct of channels"},
		"defer":  {func() { superstep.NewEntrypoint("e", fn, superstep.WithDefer()) }, "WithDefer"},
		"memory": {func() { superstep.NewEntrypoint("e", fn, superstep.WithSubgraphMemory(superstep.SubgraphMemoryNone)) }, "WithSubgraphMemory"},
		"input":  {func() { superstep.NewEntrypoint("e", fn, superstep.WithInput[rig.Counter]()) }, "WithInput"},
		"break":  {func() { superstep.NewEntrypoint("e", fn, superstep.WithInterruptBefore("x")) }, `there is no such node`},
		"effect": {func() { superstep.NewEntrypoint("e", fn, superstep.WithEffects(wrong)) }, `"wrong"`},
		"key": {func() {
			superstep.NewEntrypoint("e", fn, superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(func(string) (string, error) { return "", nil })}))
		}, "its cache key is made of string"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, ok := recover().(error)
				require.True(t, ok)
				var mistake *superstep.CompileError
				require.ErrorAs(t, err, &mistake)
				assert.Contains(t, mistake.Call, "entrypoint_past_test.go:")
				assert.ErrorContains(t, err, c.says)
			}()
			c.build()
		})
	}
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddSubgraph("sub", adder())
	g.AddEdge(superstep.Start, "sub")
	_, err := g.Compile()
	require.ErrorContains(t, err, "its subgraph is an entrypoint")
}
