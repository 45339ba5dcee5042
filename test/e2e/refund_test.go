package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// The whole example from the command line: a run that asks, an answer, money moved once, the customer told once.
func TestRefundThatAPersonApproves(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	threadID := testserver.Queue(t)

	out := r.exits(3, r.superstep("run", "refund", "--thread", threadID, "--input", `{"order_id":"o-1042"}`, "--follow"))
	require.Contains(t, out.stdout, "Refund 250.00 to order o-1042?")
	q := r.asked(threadID)
	require.Equal(t, "approval", q.Node)
	r.nothingMoved()

	out = r.exits(0, r.superstep("resume", threadID, q.ID, "--value", "true", "--follow"))
	require.Regexp(t, `(?s)^accepted  `+q.ID+`.*refunded rf-1.*\nfinished\n`, out.stdout)
	require.NotContains(t, out.stdout, "read_order", "what was shown before is no news")
	view := r.wait(threadID, thread.StatusFinished)
	require.JSONEq(t, `true`, string(view.Output["approved"]))
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, r.refundedOnce("o-1042", 25_000))
	require.Equal(t, int64(1), r.traffic().Notifications.Committed)
	require.Equal(t, []string{"paid 250.00", "approved", "refunded rf-1", "customer told"}, value[[]string](r, threadID, "log"))

	out = r.exits(0, r.superstep("show", threadID))
	require.Contains(t, out.stdout, "finished")
	out = r.exits(0, r.superstep("history", threadID, "-o", "json"))
	require.Contains(t, out.stdout, `"commit_refund"`)
	out = r.exits(0, r.superstep("state", threadID, "-o", "json"))
	require.Contains(t, out.stdout, `"rf-1"`)
	r.until("the server's index lists the thread", func() bool {
		listed, err := r.client.List(t.Context(), thread.ListQuery{Graph: "refund", Status: thread.StatusFinished})
		require.NoError(t, err)
		for _, v := range listed {
			if v.Thread == threadID {
				return true
			}
		}
		return false
	})
}

func TestRefundThatAPersonDeclines(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	threadID := r.begin("refund", map[string]string{"order_id": "o-7"})
	_, err := r.answer(threadID, r.asked(threadID).ID, false)
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	r.nothingMoved()
	require.Equal(t, int64(1), r.traffic().Notifications.Committed)
	require.Equal(t, []string{"paid 250.00", "declined", "customer told"}, value[[]string](r, threadID, "log"))
}

func TestRefundBelowTheLimitAsksNobody(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	out := r.exits(0, r.superstep("run", "refund", "--input", `{"order_id":"o-11"}`, "--follow"))
	require.Contains(t, out.stdout, "finished")
	require.NotContains(t, out.stdout, "WAITING")
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, r.refundedOnce("o-11", 4_200))
}

// What the service cannot do for the moment is tried again, and what it refuses is not: the run fails, and can be
// continued when the reason is gone.
func TestRefundsThatTheServiceDoesNotTake(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{Fail5xx: 2}))
	r.exits(0, r.superstep("run", "refund", "--input", `{"order_id":"o-11"}`, "--follow"))
	require.Equal(t, int64(1), r.refundedOnce("o-11", 4_200).Committed)

	threadID := testserver.Queue(t)
	out := r.exits(1, r.superstep("run", "refund", "--thread", threadID, "--input", `{"order_id":"e2e-1"}`, "--follow"))
	require.Contains(t, out.stdout, "failed")
	r.order(1, 5_000)
	r.exits(0, r.superstep("retry", threadID))
	r.wait(threadID, thread.StatusFinished)
	r.refundedOnce("e2e-1", 5_000)
}

func (r *rig) traffic() payments.Stats {
	r.t.Helper()
	stats, err := r.money.Stats(r.t.Context())
	require.NoError(r.t, err)
	return stats
}

func (r *rig) nothingMoved() {
	r.t.Helper()
	require.Zero(r.t, r.traffic().Refunds.Requests)
}
