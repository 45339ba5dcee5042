package payments_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
)

var hundred = payments.Refund{OrderID: "o-7", Amount: 100}

func TestFail5xx(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{Fail5xx: 2}))
	for range 2 {
		_, err := r.Refund(t.Context(), "k", hundred)
		requireUnavailable(t, err, http.StatusServiceUnavailable)
	}
	refund(t, r.Client, "k", "o-7", 100)
	got := stats(t, r.Client).Refunds
	require.Equal(t, payments.KeyTraffic{Requests: 3, Committed: 1}, got.ByKey["k"])
}

func TestFaultsAreOfOnePath(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{Path: payments.PathNotifications, Fail5xx: 1}))
	receipt := refund(t, r.Client, "k", "o-7", 100)
	_, err := r.Notify(t.Context(), "k", payments.Notification{OrderID: "o-7", Text: "x"})
	requireUnavailable(t, err, http.StatusServiceUnavailable)
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{Path: payments.PathReversals, Fail5xx: 1}))
	requireUnavailable(t, r.ReverseRefund(t.Context(), "k", receipt.ID), http.StatusServiceUnavailable)
	require.NoError(t, r.ReverseRefund(t.Context(), "k", receipt.ID))
}

func TestSetAndClearFaults(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	want := payments.Faults{Path: payments.PathRefunds, SlowMS: 1, Fail5xx: 2, DieAfterCommit: 3, HangAfterCommit: 4}
	require.NoError(t, r.SetFaults(t.Context(), want))
	list, err := r.Faults(t.Context())
	require.NoError(t, err)
	require.Equal(t, []payments.Faults{want, {Path: payments.PathReversals}, {Path: payments.PathNotifications}}, list)
	require.NoError(t, r.ClearFaults(t.Context()))
	list, err = r.Faults(t.Context())
	require.NoError(t, err)
	require.Equal(t, payments.Faults{Path: payments.PathRefunds}, list[0])

	for _, wrong := range []payments.Faults{{Path: "/orders"}, {SlowMS: -1}, {SlowMS: 1 << 40}, {Fail5xx: -1}, {HangAfterCommit: 1 << 40}} {
		requireRefused(t, r.SetFaults(t.Context(), wrong), 422, payments.CodeInvalidFaults)
	}
}

// The caller gives up while the service is slow; the refund is made all the
// same, after the caller has left.
func TestSlowCommitsLate(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{SlowMS: 15_000}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Refund(ctx, "k", hundred)
		done <- err
	}()
	require.Eventually(t, func() bool { return stats(t, r.Client).Refunds.Requests == 1 }, waitLimit, pollEvery)
	_, found, err := r.FindRefund(t.Context(), "k")
	require.NoError(t, err)
	require.False(t, found)
	cancel()
	err = <-done
	requireUnavailable(t, err, 0)
	require.ErrorIs(t, err, context.Canceled)

	r.web.Config.SetKeepAlivesEnabled(false)
	require.NoError(t, r.web.Config.Shutdown(t.Context()), "waits for the slow request")
	after := openRig(t, r.file, payments.ServerConfig{})
	_, found, err = after.FindRefund(t.Context(), "k")
	require.NoError(t, err)
	require.True(t, found)
}

func TestStopRefusesSlowWrites(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{SlowMS: 600_000}))
	r.server.Stop()
	_, err := r.Refund(t.Context(), "k", hundred)
	requireUnavailable(t, err, http.StatusServiceUnavailable)
	require.Zero(t, stats(t, r.Client).Refunds.Committed)
}

func TestHangAfterCommit(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Refund(ctx, "k", hundred)
		done <- err
	}()
	// The commit is visible while the caller still waits.
	require.Eventually(t, func() bool {
		_, found, err := r.FindRefund(t.Context(), "k")
		return err == nil && found
	}, waitLimit, pollEvery)
	require.Empty(t, done)
	cancel()
	err := <-done
	requireUnavailable(t, err, 0)
	require.ErrorIs(t, err, context.Canceled)

	receipt := refund(t, r.Client, "k", "o-7", 100)
	require.Equal(t, "rf-1", receipt.ID, "the fault is spent and the repeat gets the stored receipt")
	require.EqualValues(t, 1, stats(t, r.Client).Refunds.Committed)
}

func TestDieAfterCommitStrikesOnce(t *testing.T) {
	codes := make(chan int, 2)
	r := newRig(t, payments.ServerConfig{Exit: func(code int) { codes <- code }})
	refund(t, r.Client, "known", "o-7", 1)
	require.NoError(t, r.SetFaults(t.Context(), payments.Faults{DieAfterCommit: 1}))
	refund(t, r.Client, "known", "o-7", 1) // a repeat commits nothing, so the fault waits

	_, err := r.Refund(t.Context(), "k", hundred)
	requireUnavailable(t, err, 0)
	require.Equal(t, payments.FaultExitCode, <-codes)
	got := stats(t, r.Client).Refunds
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, got.ByKey["k"], "the transport did not send it again")
	refund(t, r.Client, "k", "o-7", 100)
	require.Empty(t, codes)
}
