package thread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// sum is an event's value.
type sum struct {
	Amount int64 `json:"amount"`
}

// settles waits for two events one after the other, the second for no longer than it is told.
func settles(name string, most time.Duration) *superstep.StateGraph[rig.Counter] {
	b := superstep.NewStateGraph[rig.Counter](name)
	b.AddNode("wait", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
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
	b.AddNode("end", rig.Appending("end"))
	b.AddEdge(superstep.Start, "wait")
	b.AddEdge("wait", "end")
	return b
}

// TestEvents are given to those who wait, kept for those who will, and refused when they do not fit.
func TestEvents(t *testing.T) {
	t.Parallel()
	rig.InModes(t, settles("settles", 0), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		got := rig.Invoke(t, th, rig.Counter{})
		assert.Equal(t, thread.StatusWaitingEvent, got.Status)
		assert.Empty(t, got.Questions, "nobody is asked")
		_, err := th.Resume(t.Context(), "yes")
		require.ErrorIs(t, err, thread.ErrAnswerRefused)
		require.ErrorContains(t, err, `waits for the event "paid"`)
		_, err = th.SendEvent(t.Context(), "paid", "a lot")
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.SendEvent(t.Context(), "", nil)
		require.ErrorIs(t, err, thread.ErrBadInput)
		reply, err := th.SendEvent(t.Context(), "sent", "early")
		require.NoError(t, err)
		assert.Empty(t, reply.Nodes)
		reply, err = th.SendEvent(t.Context(), "paid", sum{Amount: 10})
		require.NoError(t, err)
		assert.Equal(t, []string{"wait"}, reply.Nodes)
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, []string{"much", "early", "end"}, got.Output.Log.Get())
		_, err = th.SendEvent(t.Context(), "paid", sum{})
		require.ErrorIs(t, err, thread.ErrAnswerRefused)
	})
}

// TestAnEventThatDoesNotCome ends the wait, and tells what was waited for.
func TestAnEventThatDoesNotCome(t *testing.T) {
	t.Parallel()
	rig.InModes(t, settles("late", time.Second), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		_, err := th.SendEvent(t.Context(), "paid", sum{})
		require.NoError(t, err)
		log := rig.AwaitFinished(t, th).Output.Log.Get()
		require.Len(t, log, 2)
		assert.Contains(t, log[0], `waited 1s for the event "sent"`)
		assert.Contains(t, log[0], th.ID())
	})
}

// TestAnEventOfAPausedRun is taken, and counts when the run goes on.
func TestAnEventOfAPausedRun(t *testing.T) {
	t.Parallel()
	rig.InModes(t, settles("paused-waits", 0), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		require.NoError(t, th.Pause(t.Context(), ""))
		taken, err := th.SendEvent(t.Context(), "paid", sum{})
		require.NoError(t, err)
		assert.True(t, taken.Paused, "who sends it is told that nothing goes on with it")
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusPaused, got.Status)
		require.NoError(t, th.Unpause(t.Context()))
		require.Eventually(t, func() bool {
			reply, err := th.SendEvent(t.Context(), "other", nil) // it is kept
			require.NoError(t, err)
			got, err := th.Wait(t.Context())
			require.NoError(t, err)
			return len(reply.Nodes) == 0 && !reply.Paused && got.Status == thread.StatusWaitingEvent
		}, 2*time.Minute, 20*time.Millisecond)
		_, err = th.SendEvent(t.Context(), "sent", "s")
		require.NoError(t, err)
		assert.Equal(t, []string{"s", "end"}, rig.AwaitFinished(t, th).Output.Log.Get())
	})
}

// TestAWaitThatFailsItsRun is a run out of time; it may be retried, and has waited long enough.
func TestAWaitThatFailsItsRun(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("strict")
	b.AddNode("wait", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		_, err := superstep.WaitEvent[any](ctx, "paid", 300*time.Millisecond)
		return s, err
	})
	b.AddEdge(superstep.Start, "wait")
	rig.InModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.NoError(t, th.Start(t.Context(), rig.Counter{}))
		var run *superstep.RunError
		require.Eventually(t, func() bool {
			_, err := th.Wait(t.Context())
			return errors.As(err, &run)
		}, 2*time.Minute, 20*time.Millisecond)
		assert.Equal(t, thread.StatusTimedOut, run.Status)
		assert.Contains(t, run.Message, `"paid"`)
	})
}

// TestAWaitInCalledGraphs: in a subgraph, and in a graph that a node calls.
func TestAWaitInCalledGraphs(t *testing.T) {
	t.Parallel()
	inner := settles("inner", 0).MustCompile()
	b := superstep.NewStateGraph[rig.Counter]("outer")
	b.AddSubgraph("sub", inner)
	b.AddNode("calls", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		got, err := inner.Invoke(ctx, rig.Counter{})
		if err == nil {
			s.Log.Append(got.Output.Log.Get()...)
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "sub")
	b.AddEdge("sub", "calls")
	rig.InModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		assert.Equal(t, thread.StatusWaitingEvent, rig.Invoke(t, th, rig.Counter{}).Status)
		for _, word := range []string{"in a subgraph", "in a call"} {
			for name, value := range map[string]any{"paid": sum{}, "sent": word} {
				_, err := th.SendEvent(t.Context(), name, value)
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool {
				got, err := th.Wait(t.Context())
				require.NoError(t, err)
				return got.Status == thread.StatusFinished || word == "in a subgraph" && len(got.Output.Log.Get()) == 2
			}, 2*time.Minute, 20*time.Millisecond)
		}
		assert.Equal(t, []string{"in a subgraph", "end", "in a call", "end"}, rig.AwaitFinished(t, th).Output.Log.Get())
	})
}

// TestADroppedSuperstepAsksAgain what was answered in it, and takes other answers.
func TestADroppedSuperstepAsksAgain(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("dropped-asks")
	b.AddNode("ask", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		for _, text := range []string{"which?", "how many?"} {
			word, err := superstep.Interrupt[string](ctx, text)
			if err != nil {
				return s, err
			}
			s.Log.Append(word)
		}
		return s, nil
	})
	b.AddEdge(superstep.Start, "ask")
	rig.InModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		first := rig.Invoke(t, th, rig.Counter{}).Questions
		require.Len(t, first, 1)
		got, err := th.Resume(t.Context(), "this one")
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		require.NoError(t, th.Cancel(t.Context(), "start over", superstep.WithMode(thread.CancelDrop)))
		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, got.Status)
		require.Len(t, got.Questions, 1)
		assert.Equal(t, first[0].ID, got.Questions[0].ID, "the same task asks the same")
		for _, answer := range []string{"that one", "two"} {
			got, err = th.Resume(t.Context(), answer)
			require.NoError(t, err)
		}
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, []string{"that one", "two"}, got.Output.Log.Get())
	})
}

// TestADroppedWaitBeginsAnew: its time is not that of the wait that was forgotten.
func TestADroppedWaitBeginsAnew(t *testing.T) {
	const most = 8 * time.Second // time to cancel the first in, and to answer the second
	b := superstep.NewStateGraph[rig.Counter]("dropped-waits")
	b.AddNode("wait", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		word, err := superstep.WaitEvent[string](ctx, "sent", most)
		s.Log.Append(word)
		return s, err
	})
	b.AddEdge(superstep.Start, "wait")
	rig.InModes(t, b, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		t.Parallel()
		require.Equal(t, thread.StatusWaitingEvent, rig.Invoke(t, th, rig.Counter{}).Status)
		due := time.Now().Add(most)
		require.NoError(t, th.Cancel(t.Context(), "start over", superstep.WithMode(thread.CancelDrop)))
		require.Eventually(t, func() bool { return time.Now().After(due) }, time.Minute, 10*time.Millisecond)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaitingEvent, got.Status)
		reply, err := th.SendEvent(t.Context(), "sent", "in time")
		require.NoError(t, err)
		assert.Equal(t, []string{"wait"}, reply.Nodes)
		assert.Equal(t, []string{"in time"}, rig.AwaitFinished(t, th).Output.Log.Get())
	})
}

// TestAnEventWhileEffectsAreUndone is kept for the waits after that.
func TestAnEventWhileEffectsAreUndone(t *testing.T) {
	t.Parallel()
	bank := rig.NewBank()
	pay := bank.Effect("bank.pay")
	pay.Compensate = nil // a person decides
	b := superstep.NewStateGraph[rig.Payment]("undone-waits")
	b.AddEffect(pay)
	b.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		if _, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}); err != nil {
			return s, err
		}
		word, err := superstep.WaitEvent[string](ctx, "paid", 0)
		s.Log.Append(word)
		return s, err
	})
	b.AddEdge(superstep.Start, "pay")
	rig.InModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Payment]) {
		bank.Empty()
		got, err := th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaitingEvent, got.Status)
		require.NoError(t, th.Cancel(t.Context(), "enough", superstep.WithMode(thread.CancelCompensate)))
		reply, err := th.SendEvent(t.Context(), "paid", "late")
		require.NoError(t, err)
		assert.Empty(t, reply.Nodes, "nobody waits any more")
		require.NoError(t, th.Cancel(t.Context(), "leave it"))
		_, err = th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"late"}, rig.AwaitFinished(t, th).Output.Log.Get())
	})
}

// TestAKeptEventThatDoesNotFit is noted with the run when somebody comes to wait for it.
func TestAKeptEventThatDoesNotFit(t *testing.T) {
	t.Parallel()
	rig.InModes(t, settles("misfit", 0), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		_, err := th.SendEvent(t.Context(), "sent", 7)
		require.NoError(t, err)
		_, err = th.SendEvent(t.Context(), "paid", sum{})
		require.NoError(t, err)
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.StatusWaitingEvent, got.Status)
		v, err := th.Show(t.Context())
		require.NoError(t, err)
		require.Len(t, v.Refused, 1)
		assert.Equal(t, "sent", v.Refused[0].Event)
	})
}
