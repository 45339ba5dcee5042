package refund_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// newPayments is the payments service on a real socket and a real file.
func newPayments(t *testing.T) *payments.Client {
	t.Helper()
	store, err := payments.OpenStore(t.Context(), filepath.Join(t.TempDir(), "payments.db"))
	require.NoError(t, err)
	server := payments.NewServer(store, payments.ServerConfig{Exit: func(int) {}})
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Stop()
		web.Close()
		require.NoError(t, store.Close())
	})
	client, err := payments.NewClient(web.URL)
	require.NoError(t, err)
	return client
}

// TestRefund runs the graph's paths in memory and on Temporal.
func TestRefund(t *testing.T) {
	pay := newPayments(t)
	g := refund.Graph(pay, refund.DefaultLimit)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		t.Run("below the limit nobody is asked", func(t *testing.T) {
			order := newOrder(t, pay, 4_200)
			result, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"order_id": order})
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, result.Status)
			require.EqualValues(t, 4_200, result.Output.Amount.Get())
			requireRefunds(t, pay, order, 1)
		})
		t.Run("above it a person says yes", func(t *testing.T) {
			order := newOrder(t, pay, 25_000)
			th := g.Thread(rt, graphtest.ThreadID(t))
			result, err := th.Invoke(t.Context(), map[string]any{"order_id": order})
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, result.Status)
			require.JSONEq(t, `"Refund 250.00 to order `+order+`?"`, string(result.Questions[0].Value))
			requireRefunds(t, pay, order, 0)

			_, err = th.Resume(t.Context(), "yes")
			require.ErrorIs(t, err, thread.ErrBadInput, "an answer of another type is refused, and the question stays open")

			result, err = th.Resume(t.Context(), true)
			require.NoError(t, err)
			require.Equal(t, []string{"paid 250.00", "approved", "refunded " + result.Output.Receipt.Get().ID, "customer told"},
				result.Output.Log.Get())
			requireRefunds(t, pay, order, 1)
		})
		t.Run("or no", func(t *testing.T) {
			order := newOrder(t, pay, 25_000)
			th := g.Thread(rt, graphtest.ThreadID(t))
			_, err := th.Invoke(t.Context(), map[string]any{"order_id": order})
			require.NoError(t, err)
			result, err := th.Resume(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, result.Status)
			require.False(t, result.Output.Receipt.IsSet())
			requireRefunds(t, pay, order, 0)
		})
		t.Run("an unknown order fails at once", func(t *testing.T) {
			_, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"order_id": "o-none"})
			var failed *superstep.RunError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, thread.StatusFailed, failed.Status)
			require.Contains(t, failed.Error(), "o-none")
		})
	}, g)
}

// TestCommittedButNotReplied loses the reply of a refund that was made: it is looked up, not made again.
func TestCommittedButNotReplied(t *testing.T) {
	pay := newPayments(t)
	g := refund.Graph(pay, refund.DefaultLimit)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		order := newOrder(t, pay, 4_200)
		require.NoError(t, pay.SetFaults(t.Context(), payments.Faults{DieAfterCommit: 1}))
		before, err := pay.Stats(t.Context())
		require.NoError(t, err)

		result, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"order_id": order})
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, result.Status)

		after, err := pay.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, after.Refunds.Requests-before.Refunds.Requests, "sent once")
		require.EqualValues(t, 1, after.Refunds.Lookups-before.Refunds.Lookups, "looked up once")
		requireRefunds(t, pay, order, 1)
	}, g)
}

var orders int

func newOrder(t *testing.T, pay *payments.Client, cents int64) string {
	t.Helper()
	orders++
	order, err := pay.PutOrder(t.Context(), payments.Order{ID: "o-test-" + string(rune('a'+orders)), Amount: cents})
	require.NoError(t, err)
	return order.ID
}

func requireRefunds(t *testing.T, pay *payments.Client, order string, want int) {
	t.Helper()
	refunds, err := pay.Refunds(t.Context(), order)
	require.NoError(t, err)
	require.Len(t, refunds, want)
}
