package graphtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// TestInterruptsOfATrip interrupts parallel tasks, a loop, nodes that ask themselves, and a subgraph, where an activity
// runs several supersteps.
func TestInterruptsOfATrip(t *testing.T) {
	graphtest.Interrupts(t, travel(superstep.TargetLookupOnly), trip{}, graphtest.Answer("fine"), graphtest.Answer(true),
		graphtest.Answer("better"), graphtest.Answer(false), graphtest.Modes(graphtest.Fused), graphtest.Parallel())
}

// TestInterruptsInEveryMode does so in memory, for a graph and an entrypoint.
func TestInterruptsInEveryMode(t *testing.T) {
	modes := graphtest.Modes(graphtest.Sync, graphtest.Fused, graphtest.Async, graphtest.Exit)
	failed, err := graphtest.InterruptFailures(t, travel(superstep.TargetNone), trip{}, graphtest.Answer("fine"),
		graphtest.Answer(true), graphtest.Answer("better"), graphtest.Answer(false), modes)
	require.NoError(t, err)
	require.Empty(t, failed)
	failed, err = graphtest.InterruptFailures(t, report(), []string{"rome", "oslo"}, graphtest.Answer(true), graphtest.Answer(true), modes)
	require.NoError(t, err)
	require.Empty(t, failed)
}

// TestInterruptsSeeMistakes: a graph that does not go on as if nothing had been fails where it does not.
func TestInterruptsSeeMistakes(t *testing.T) {
	t.Run("a state that counts executions", func(t *testing.T) {
		n := 0
		g := one(superstep.TargetKeyed, func(_ context.Context, s trip, _ *superstep.Effect[payment, string]) (trip, error) {
			n++
			s.Paid.Add(int64(n))
			return s, nil
		})
		failed, err := graphtest.InterruptFailures(t, g, trip{})
		require.NoError(t, err)
		require.Contains(t, failed["sync/pay/asks_last"], `the state's field "paid" is`)
		require.Contains(t, failed["sync/pay/asks_last"], "without the interruption 1")
		failed, err = graphtest.InterruptFailures(t, g, trip{}, graphtest.Except("paid"))
		require.NoError(t, err)
		require.Empty(t, failed)
	})
	t.Run("a key that is not the same each time", func(t *testing.T) {
		n := 0
		failed, err := graphtest.InterruptFailures(t, one(superstep.TargetKeyed,
			func(ctx context.Context, s trip, pay *superstep.Effect[payment, string]) (trip, error) {
				n++
				_, err := pay.Call(ctx, payment{"rome", 1}, superstep.WithKey(fmt.Sprint(n)))
				return s, err
			}), trip{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"sync/pay/asks_last": "the writes to the outside are not those without the " +
			`interruption: one too many: bank.pay {"amount":1,"city":"rome"}`}, failed)
	})
	t.Run("a way that is taken by chance", func(t *testing.T) {
		n := 0
		failed, err := graphtest.InterruptFailures(t, one(superstep.TargetKeyed,
			func(ctx context.Context, s trip, _ *superstep.Effect[payment, string]) (trip, error) {
				if n++; n > 1 {
					_, err := superstep.Interrupt[bool](ctx, "again?")
					return s, err
				}
				return s, nil
			}), trip{})
		require.NoError(t, err)
		require.Contains(t, failed["sync/pay/before"], `asks "again?", which it did not ask without the interruption`)
	})
}

func TestInterruptsRefuse(t *testing.T) {
	for want, opts := range map[string][]graphtest.Option{
		"give one more graphtest.Answer":    {graphtest.Answer("fine")},
		"Pairs is for graphtest.Matrix":     {graphtest.Pairs()},
		"Info is for graphtest.Context":     {graphtest.Info(superstep.TaskInfo{Step: 2})},
		"CrashAfterSend is for graphtest.C": {graphtest.CrashAfterSend(refund)},
	} {
		_, err := graphtest.InterruptFailures(t, travel(superstep.TargetKeyed), trip{}, opts...)
		require.ErrorContains(t, err, want)
	}
	_, err := graphtest.InterruptFailures(t, report(), 7)
	require.ErrorIs(t, err, thread.ErrBadInput)
}
