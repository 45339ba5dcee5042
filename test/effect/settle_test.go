package effect_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestACancellationSaysWhatItWaitsFor: a call that was under way when its run was cancelled may still arrive, at a target
// that can only be asked. Whoever looks at the thread reads which call is waited for, and until when, and reads it no more
// once the target is asked again.
func TestACancellationSaysWhatItWaitsFor(t *testing.T) {
	const callTime, settled = 2 * time.Second, 12 * time.Second // the call's time, and that with its settle time: long enough to be looked at
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	pay.Target = superstep.TargetLookupOnly
	var mu sync.Mutex
	var called, asked, answer chan struct{}
	finds := 0
	pay.Do = func(ctx context.Context, _ string, _ rig.Transfer) (rig.Slip, error) {
		close(called)
		<-ctx.Done() // nothing has arrived by then
		return rig.Slip{}, context.Cause(ctx)
	}
	find := pay.Lookup
	pay.Lookup = func(ctx context.Context, key string, p rig.Transfer) (superstep.Finding[rig.Slip], error) {
		mu.Lock()
		finds++
		again := finds == 2
		mu.Unlock()
		if again { // behind the wait
			close(asked)
			<-answer
		}
		return find(ctx, key, p)
	}
	g := superstep.NewStateGraph[rig.Payment]("cancel-waits")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		_, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}, superstep.WithCallTimeout(callTime), superstep.WithSettleTime(settled-callTime))
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		mu.Lock()
		finds, called, asked, answer = 0, make(chan struct{}), make(chan struct{}), make(chan struct{})
		mu.Unlock()
		th := graph.Thread(rt, graphtest.ThreadID(t))
		cancelled := func() *thread.CancelView {
			view, err := th.Show(t.Context())
			require.NoError(t, err)
			return view.Cancel
		}
		waits := func() *thread.SettleView {
			if c := cancelled(); c != nil {
				return c.Waits
			}
			return nil
		}
		require.NoError(t, th.Start(t.Context(), rig.Payment{}))
		<-called
		ended := make(chan error, 1)
		go func() { ended <- th.Cancel(t.Context(), "ordered twice", superstep.WithMode(thread.CancelCompensate)) }()

		var waiting *thread.SettleView
		require.Eventually(t, func() bool { waiting = waits(); return waiting != nil }, 2*time.Minute, 5*time.Millisecond, "it never said that it waits")
		assert.WithinRange(t, waiting.Until, time.Now(), time.Now().Add(settled))
		assert.Equal(t, "bank.pay", waiting.Effect)
		effects, err := th.Effects(t.Context())
		require.NoError(t, err)
		require.Len(t, effects.Effects, 1)
		assert.Equal(t, effects.Effects[0].Key, waiting.Key)

		<-asked
		assert.False(t, time.Now().Before(waiting.Until), "the target was asked before that")
		require.Eventually(t, func() bool { return waits() == nil }, 2*time.Minute, 5*time.Millisecond, "it waits no more")
		close(answer)
		require.NoError(t, <-ended)
		_, err = th.Wait(t.Context())
		require.ErrorContains(t, err, "ordered twice")
		done := cancelled()
		require.NotNil(t, done)
		assert.Nil(t, done.Waits)
		assert.Equal(t, 1, done.Undone, "it was never made")
		assert.Empty(t, done.Left)
		assert.Equal(t, []string{"pay 1 failed"}, rig.EffectsOf(t, th))
	}, graph)
}
