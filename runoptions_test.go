package superstep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
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
	g := chain("g", "a", "b").MustCompile()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			th := g.Thread(superstep.NewMemory(), "t")
			err := th.Start(t.Context(), counter{}, test.option)
			var refused *superstep.Error
			require.ErrorAs(t, err, &refused)
			assert.ErrorIs(t, err, superstep.ErrBadInput)
			assert.ErrorContains(t, err, test.want)
			assert.Equal(t, "t", refused.Thread)
			_, err = th.Wait(t.Context())
			assert.ErrorIs(t, err, superstep.ErrNotFound, "nothing began")
		})
	}
}

func TestBreakpointsOfOneRunReplaceTheGraphs(t *testing.T) {
	g := chain("g", "a", "b", "c")
	compiled := g.MustCompile(superstep.WithInterruptBefore("b"))
	tests := map[string]struct {
		options []superstep.RunOption
		status  superstep.Status
		ran     []string
	}{
		"none given":     {nil, superstep.StatusStopped, []string{"a"}},
		"nil keeps":      {[]superstep.RunOption{superstep.WithBreakpoints(nil, nil)}, superstep.StatusStopped, []string{"a"}},
		"empty is none":  {[]superstep.RunOption{superstep.WithBreakpoints([]string{}, nil)}, superstep.StatusFinished, []string{"a", "b", "c"}},
		"others":         {[]superstep.RunOption{superstep.WithBreakpoints([]string{"c"}, nil)}, superstep.StatusStopped, []string{"a", "b"}},
		"after":          {[]superstep.RunOption{superstep.WithBreakpoints([]string{}, []string{"a"})}, superstep.StatusStopped, []string{"a"}},
		"all":            {[]superstep.RunOption{superstep.WithBreakpoints([]string{superstep.All}, nil)}, superstep.StatusStopped, nil},
		"the last wins":  {[]superstep.RunOption{superstep.WithBreakpoints([]string{"b"}, nil), superstep.WithBreakpoints([]string{}, nil)}, superstep.StatusFinished, []string{"a", "b", "c"}},
		"nil after list": {[]superstep.RunOption{superstep.WithBreakpoints(nil, []string{"c"})}, superstep.StatusStopped, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			th := compiled.Thread(superstep.NewMemory(), "t")
			got, err := th.Invoke(t.Context(), counter{}, test.options...)
			require.NoError(t, err)
			assert.Equal(t, test.status, got.Status)
			assert.Equal(t, test.ran, got.Output.Log.Get())
			if test.status == superstep.StatusFinished {
				return
			}
			got, err = th.Invoke(t.Context(), nil, superstep.WithBreakpoints([]string{}, []string{}))
			require.NoError(t, err)
			assert.Equal(t, superstep.StatusFinished, got.Status, "the next run has breakpoints of its own")
			assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
		})
	}
}

func TestARunFromACheckpointRunsWhatCameAfterItAgain(t *testing.T) {
	th := chain("g", "a", "b", "c").MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), counter{})
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
	assert.Equal(t, superstep.StatusStopped, got.Status)
	assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get(), "c is not part of this branch")
	got, err = th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
	longer, err := th.History(t.Context())
	require.NoError(t, err)
	assert.Greater(t, len(longer), len(history), "the other branch stays")
}
