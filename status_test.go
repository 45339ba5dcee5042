package superstep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestEachEndHasItsOwnStatus, in the error, for those who look, and in lists, which read search attributes.
func TestEachEndHasItsOwnStatus(t *testing.T) {
	b := superstep.NewStateGraph[counter]("ends")
	b.AddNode("choose", func(_ context.Context, s counter) (counter, error) { return s, nil })
	b.AddNode("fails", func(context.Context, counter) (counter, error) { return counter{}, errors.New("no") })
	b.AddNode("hangs", func(ctx context.Context, s counter) (counter, error) {
		<-ctx.Done()
		return s, ctx.Err()
	})
	b.AddNode("limps", func(ctx context.Context, s counter) (counter, error) {
		<-ctx.Done()
		return s, ctx.Err()
	}, superstep.WithTimeout(100*time.Millisecond, 0))
	b.AddNode("ends", appending("done"))
	b.AddEdge(superstep.Start, "choose")
	b.AddConditionalEdges("choose", func(_ context.Context, s counter) ([]superstep.Target, error) {
		return superstep.To(s.Log.Get()[0]), nil
	}, "fails", "hangs", "limps", "ends")
	g := b.MustCompile()
	for _, end := range []struct {
		node string
		opts []superstep.RunOption
		want superstep.Status
	}{
		{"fails", nil, superstep.StatusFailed},
		{"limps", nil, superstep.StatusTimedOut},
		{"hangs", []superstep.RunOption{superstep.WithStepTimeout(200 * time.Millisecond)}, superstep.StatusTimedOut},
		{"ends", []superstep.RunOption{superstep.WithRecursionLimit(1)}, superstep.StatusOutOfBudget},
		{"ends", nil, superstep.StatusFinished},
	} {
		t.Run(end.node+" "+string(end.want), func(t *testing.T) {
			onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
				_, err := th.Invoke(t.Context(), wrote(end.node), end.opts...)
				if end.want != superstep.StatusFinished {
					var run *superstep.RunError
					require.ErrorAs(t, err, &run)
					assert.Equal(t, end.want, run.Status)
					assert.True(t, run.Status.Failed())
				}
				state, err := th.State(t.Context())
				require.NoError(t, err)
				assert.Equal(t, end.want, state.Status)
				if c, ok := rt.(*superstep.Client); ok {
					assert.Equal(t, end.want, listed(t, c, th.ID(), end.want).Status)
				}
			})
		})
	}
}

// listed waits until a thread is in the list of those with a status: the server's index is a moment behind.
func listed(t *testing.T, c *superstep.Client, thread string, status superstep.Status) (found superstep.ThreadView) {
	t.Helper()
	require.Eventually(t, func() bool {
		views, err := c.List(t.Context(), superstep.ListQuery{Status: status, Limit: 1000})
		require.NoError(t, err)
		for _, v := range views {
			if v.Thread == thread {
				found = v
				return true
			}
		}
		return false
	}, 30*time.Second, 50*time.Millisecond, "thread %s is not listed as %s", thread, status)
	return found
}

// TestAPauseIsListed with who and why.
func TestAPauseIsListed(t *testing.T) {
	b, started, release := heldChain("paused-listed")
	g := b.MustCompile()
	onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		c, ok := rt.(*superstep.Client)
		if !ok {
			t.Skip("only a server lists")
		}
		require.NoError(t, th.Start(t.Context(), counter{}))
		<-started
		reply, err := c.Pause(t.Context(), superstep.PauseRequest{Thread: th.ID(), By: "ann", Reason: "audit"})
		require.NoError(t, err)
		assert.True(t, reply.Changed)
		release <- struct{}{}
		v := listed(t, c, th.ID(), superstep.StatusPaused)
		assert.Equal(t, "ann", v.Paused.By)
		assert.Equal(t, "audit", v.Paused.Reason)
		_, err = c.Unpause(t.Context(), superstep.PauseRequest{Thread: th.ID()})
		require.NoError(t, err)
		assert.Nil(t, listed(t, c, th.ID(), superstep.StatusFinished).Paused)
	})
}
