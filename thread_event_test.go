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

// sum is an event's value.
type sum struct {
	Amount int64 `json:"amount"`
}

// settles waits for two events one after the other, the second for no longer than it is told.
func settles(name string, most time.Duration) *superstep.StateGraph[counter] {
	b := superstep.NewStateGraph[counter](name)
	b.AddNode("wait", func(ctx context.Context, s counter) (counter, error) {
		paid, err := superstep.WaitEvent[sum](ctx, "paid", 0)
		if err != nil {
			return s, err
		}
		if paid.Amount > 9 {
			s.Log.Append("much")
		}
		word, err := superstep.WaitEvent[string](ctx, "sent", most)
		if errors.Is(err, superstep.ErrEventTimeout) {
			word, err = err.Error(), nil
		}
		s.Log.Append(word)
		return s, err
	})
	b.AddNode("end", appending("end"))
	b.AddEdge(superstep.Start, "wait")
	b.AddEdge("wait", "end")
	return b
}

// TestEvents are given to those who wait, kept for those who will, and refused when they do not fit.
func TestEvents(t *testing.T) {
	inModes(t, settles("settles", 0), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		got := invoke(t, th, counter{})
		assert.Equal(t, superstep.StatusWaitingEvent, got.Status)
		assert.Empty(t, got.Questions, "nobody is asked")
		_, err := th.Resume(t.Context(), "yes")
		require.ErrorIs(t, err, superstep.ErrAnswerRefused)
		require.ErrorContains(t, err, `waits for the event "paid"`)
		_, err = th.SendEvent(t.Context(), "paid", "a lot")
		require.ErrorIs(t, err, superstep.ErrBadInput)
		_, err = th.SendEvent(t.Context(), "", nil)
		require.ErrorIs(t, err, superstep.ErrBadInput)
		reply, err := th.SendEvent(t.Context(), "sent", "early")
		require.NoError(t, err)
		assert.Empty(t, reply.Nodes)
		reply, err = th.SendEvent(t.Context(), "paid", sum{Amount: 10})
		require.NoError(t, err)
		assert.Equal(t, []string{"wait"}, reply.Nodes)
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusFinished, got.Status)
		assert.Equal(t, []string{"much", "early", "end"}, got.Output.Log.Get())
		_, err = th.SendEvent(t.Context(), "paid", sum{})
		require.ErrorIs(t, err, superstep.ErrAnswerRefused)
	})
}

// finishes waits until a thread's run is over: Wait returns when it waits for an event.
func finishes[Out any](t *testing.T, th *superstep.Thread[Out]) (got superstep.Result[Out]) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		return got.Status == superstep.StatusFinished
	}, 30*time.Second, 20*time.Millisecond)
	return got
}

// TestAnEventThatDoesNotCome ends the wait, and tells what was waited for.
func TestAnEventThatDoesNotCome(t *testing.T) {
	inModes(t, settles("late", time.Second), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		invoke(t, th, counter{})
		_, err := th.SendEvent(t.Context(), "paid", sum{})
		require.NoError(t, err)
		log := finishes(t, th).Output.Log.Get()
		require.Len(t, log, 2)
		assert.Contains(t, log[0], `waited 1s for the event "sent"`)
		assert.Contains(t, log[0], th.ID())
	})
}

// TestAnEventOfAPausedRun is taken, and counts when the run goes on.
func TestAnEventOfAPausedRun(t *testing.T) {
	inModes(t, settles("paused-waits", 0), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		invoke(t, th, counter{})
		require.NoError(t, th.Pause(t.Context(), ""))
		_, err := th.SendEvent(t.Context(), "paid", sum{})
		require.NoError(t, err)
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusPaused, got.Status)
		require.NoError(t, th.Unpause(t.Context()))
		require.Eventually(t, func() bool {
			reply, err := th.SendEvent(t.Context(), "other", nil) // it is kept
			require.NoError(t, err)
			got, err := th.Wait(t.Context())
			require.NoError(t, err)
			return len(reply.Nodes) == 0 && got.Status == superstep.StatusWaitingEvent
		}, 10*time.Second, 20*time.Millisecond)
		_, err = th.SendEvent(t.Context(), "sent", "s")
		require.NoError(t, err)
		assert.Equal(t, []string{"s", "end"}, finishes(t, th).Output.Log.Get())
	})
}

// TestAWaitThatFailsItsRun is a run out of time; it may be retried, and has waited long enough.
func TestAWaitThatFailsItsRun(t *testing.T) {
	b := superstep.NewStateGraph[counter]("strict")
	b.AddNode("wait", func(ctx context.Context, s counter) (counter, error) {
		_, err := superstep.WaitEvent[any](ctx, "paid", 300*time.Millisecond)
		return s, err
	})
	b.AddEdge(superstep.Start, "wait")
	inModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		require.NoError(t, th.Start(t.Context(), counter{}))
		var run *superstep.RunError
		require.Eventually(t, func() bool {
			_, err := th.Wait(t.Context())
			return errors.As(err, &run)
		}, 30*time.Second, 20*time.Millisecond)
		assert.Equal(t, superstep.StatusTimedOut, run.Status)
		assert.Contains(t, run.Message, `"paid"`)
	})
}

// TestAWaitInCalledGraphs: in a subgraph, and in a graph that a node calls.
func TestAWaitInCalledGraphs(t *testing.T) {
	inner := settles("inner", 0).MustCompile()
	b := superstep.NewStateGraph[counter]("outer")
	b.AddSubgraph("sub", inner)
	b.AddNode("calls", func(ctx context.Context, s counter) (counter, error) {
		got, err := inner.Invoke(ctx, counter{})
		if err == nil {
			s.Log.Append(got.Output.Log.Get()...)
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "sub")
	b.AddEdge("sub", "calls")
	inModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		assert.Equal(t, superstep.StatusWaitingEvent, invoke(t, th, counter{}).Status)
		for _, word := range []string{"in a subgraph", "in a call"} {
			for name, value := range map[string]any{"paid": sum{}, "sent": word} {
				_, err := th.SendEvent(t.Context(), name, value)
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool {
				got, err := th.Wait(t.Context())
				require.NoError(t, err)
				return got.Status == superstep.StatusFinished || word == "in a subgraph" && len(got.Output.Log.Get()) == 2
			}, 30*time.Second, 20*time.Millisecond)
		}
		assert.Equal(t, []string{"in a subgraph", "end", "in a call", "end"}, finishes(t, th).Output.Log.Get())
	})
}
