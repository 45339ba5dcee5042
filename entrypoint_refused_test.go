package superstep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

func TestEntrypointRefusesWhatDoesNotFit(t *testing.T) {
	type order struct {
		ID string `json:"id"`
	}
	g := superstep.NewEntrypoint("strict", func(_ context.Context, o order) (string, error) { return o.ID, nil })
	onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[string]) {
		for _, bad := range []any{4, map[string]any{"id": 1}, map[string]any{"idd": "x"}, []byte(`{"id":`), []byte(`null`)} {
			_, err := th.Invoke(t.Context(), bad)
			require.ErrorIs(t, err, superstep.ErrBadInput, "%v", bad)
		}
		_, err := th.Invoke(t.Context(), nil)
		require.ErrorIs(t, err, superstep.ErrNotFound)
		assert.Equal(t, "o-7", entrypointRuns(t, th, order{"o-7"}).Output)
		_, err = th.Command(t.Context(), superstep.Command[string]{Update: "x"})
		require.ErrorIs(t, err, superstep.ErrBadInput)
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
		sub := superstep.NewStateGraph[counter]("inner")
		sub.AddNode("a", func(ctx context.Context, s counter) (counter, error) {
			called = superstep.Save(ctx, 1)
			return s, nil
		})
		sub.AddEdge(superstep.Start, "a")
		_, err = sub.MustCompile().Invoke(ctx, counter{})
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
		"name":     {func() { superstep.NewEntrypoint("a.b", fn) }, `separates names`},
		"nil":      {func() { superstep.NewEntrypoint[int, int]("e", nil) }, "its function is nil"},
		"channels": {func() { superstep.NewEntrypoint("e", func(context.Context, counter) (int, error) { return 0, nil }) }, "a struct of channels"},
		"defer":    {func() { superstep.NewEntrypoint("e", fn, superstep.WithDefer()) }, "WithDefer"},
		"memory":   {func() { superstep.NewEntrypoint("e", fn, superstep.WithMemory(superstep.SubgraphMemoryNone)) }, "WithMemory"},
		"input":    {func() { superstep.NewEntrypoint("e", fn, superstep.WithInput[counter]()) }, "WithInput"},
		"break":    {func() { superstep.NewEntrypoint("e", fn, superstep.WithInterruptBefore("x")) }, `there is no such node`},
		"effect":   {func() { superstep.NewEntrypoint("e", fn, superstep.WithEffects(wrong)) }, `"wrong"`},
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
				assert.Contains(t, mistake.Call, "entrypoint_refused_test.go:")
				assert.ErrorContains(t, err, c.says)
			}()
			c.build()
		})
	}
	g := superstep.NewStateGraph[counter]("g")
	g.AddSubgraph("sub", adder())
	g.AddEdge(superstep.Start, "sub")
	_, err := g.Compile()
	require.ErrorContains(t, err, "its subgraph is an entrypoint")
}
