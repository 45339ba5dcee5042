package superstep_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestADroppedSuperstepAsksAgain what was answered in it, and takes other answers.
func TestADroppedSuperstepAsksAgain(t *testing.T) {
	b := superstep.NewStateGraph[counter]("dropped-asks")
	b.AddNode("ask", func(ctx context.Context, s counter) (counter, error) {
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
	inModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		first := invoke(t, th, counter{}).Questions
		require.Len(t, first, 1)
		got, err := th.Resume(t.Context(), "this one")
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		require.NoError(t, th.Cancel(t.Context(), "start over", superstep.CancelDrop))
		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		require.Equal(t, superstep.StatusWaiting, got.Status)
		require.Len(t, got.Questions, 1)
		assert.Equal(t, first[0].ID, got.Questions[0].ID, "the same task asks the same")
		for _, answer := range []string{"that one", "two"} {
			got, err = th.Resume(t.Context(), answer)
			require.NoError(t, err)
		}
		assert.Equal(t, superstep.StatusFinished, got.Status)
		assert.Equal(t, []string{"that one", "two"}, got.Output.Log.Get())
	})
}

// TestADroppedWaitBeginsAnew: its time is not that of the wait that was forgotten.
func TestADroppedWaitBeginsAnew(t *testing.T) {
	const most = time.Second
	b := superstep.NewStateGraph[counter]("dropped-waits")
	b.AddNode("wait", func(ctx context.Context, s counter) (counter, error) {
		word, err := superstep.WaitEvent[string](ctx, "sent", most)
		s.Log.Append(word)
		return s, err
	})
	b.AddEdge(superstep.Start, "wait")
	inModes(t, b, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		require.Equal(t, superstep.StatusWaitingEvent, invoke(t, th, counter{}).Status)
		due := time.Now().Add(most)
		require.NoError(t, th.Cancel(t.Context(), "start over", superstep.CancelDrop))
		require.Eventually(t, func() bool { return time.Now().After(due) }, 10*time.Second, 10*time.Millisecond)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		require.Equal(t, superstep.StatusWaitingEvent, got.Status)
		reply, err := th.SendEvent(t.Context(), "sent", "in time")
		require.NoError(t, err)
		assert.Equal(t, []string{"wait"}, reply.Nodes)
		assert.Equal(t, []string{"in time"}, finishes(t, th).Output.Log.Get())
	})
}

// TestAnEventWhileEffectsAreUndone is kept for the waits after that.
func TestAnEventWhileEffectsAreUndone(t *testing.T) {
	bank := newTill()
	pay := bank.effect("bank.pay")
	pay.Compensate = nil // a person decides
	b := superstep.NewStateGraph[payment]("undone-waits")
	b.AddEffect(pay)
	b.AddNode("pay", func(ctx context.Context, s payment) (payment, error) {
		if _, err := pay.Call(ctx, transfer{To: "ann", Amount: 1}); err != nil {
			return s, err
		}
		word, err := superstep.WaitEvent[string](ctx, "paid", 0)
		s.Log.Append(word)
		return s, err
	})
	b.AddEdge(superstep.Start, "pay")
	inModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[payment]) {
		bank.empty()
		got, err := th.Invoke(t.Context(), payment{})
		require.NoError(t, err)
		require.Equal(t, superstep.StatusWaitingEvent, got.Status)
		require.NoError(t, th.Cancel(t.Context(), "enough", superstep.CancelCompensate))
		reply, err := th.SendEvent(t.Context(), "paid", "late")
		require.NoError(t, err)
		assert.Empty(t, reply.Nodes, "nobody waits any more")
		require.NoError(t, th.Cancel(t.Context(), "leave it"))
		_, err = th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"late"}, finishes(t, th).Output.Log.Get())
	})
}
