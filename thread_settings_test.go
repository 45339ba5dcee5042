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

// TestARetryKeepsTheSettingsOfItsRun, whether the run was the thread's first or one that it went on with.
func TestARetryKeepsTheSettingsOfItsRun(t *testing.T) {
	var broken atomic.Bool
	g := superstep.NewStateGraph[counter]("settled")
	g.AddNode("a", appending("a"))
	g.AddNode("b", func(ctx context.Context, s counter) (counter, error) {
		if broken.Load() {
			return s, errors.New("broken")
		}
		who, err := superstep.RunContext[string](ctx)
		s.Log.Append("b for " + who)
		return s, err
	})
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	onRuntimes(t, g.MustCompile(superstep.WithInterruptBefore("b")), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		broken.Store(true)
		_, err := th.Invoke(t.Context(), counter{}, superstep.WithContext("ann"), superstep.WithBreakpoints([]string{}, []string{"b"}))
		require.Error(t, err, "the graph's own breakpoint does not hold it")
		broken.Store(false)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b for ann"}, got.Output.Log.Get())
		assert.Equal(t, superstep.StatusStopped, got.Status, "the run's breakpoint after b")

		got = invoke(t, th, counter{})
		require.Equal(t, superstep.StatusStopped, got.Status, "the graph's breakpoint before b, without the run's settings")
		broken.Store(true)
		_, err = th.Invoke(t.Context(), nil, superstep.WithContext("bob"))
		require.Error(t, err)
		broken.Store(false)
		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b for ann", "a", "b for bob"}, got.Output.Log.Get())
	})
}
