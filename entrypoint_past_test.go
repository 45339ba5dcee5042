package superstep_test

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
)

func TestEntrypointStateHistoryUpdateAndFork(t *testing.T) {
	g := adder()
	onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[int]) {
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
		require.ErrorIs(t, err, superstep.ErrBadInput)
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
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
		require.Equal(t, superstep.StatusWaiting, entrypointRuns(t, th, 1).Status)
		state, err := th.Update(t.Context(), 9)
		require.NoError(t, err)
		assert.Equal(t, 9, state.State)
		assert.Equal(t, superstep.StatusFinished, state.Status)
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
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[map[string]int]) {
		modes := []superstep.StreamOption{superstep.StreamUpdates, superstep.StreamValues, superstep.StreamCustom}
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
