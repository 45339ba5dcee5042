package e2e_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
	"superstep.dev/thread"
)

// refunding starts a refund whose customer is told without an answer: the money has moved, and the run goes on.
func (r *rig) refunding(order string) (thread string) {
	r.t.Helper()
	require.NoError(r.t, r.money.SetFaults(r.t.Context(), payments.Faults{Path: payments.PathNotifications, HangAfterCommit: 1}))
	thread = r.begin("refund", map[string]string{"order_id": order})
	r.until("the customer is told", func() bool { return r.traffic().Notifications.Committed == 1 })
	return thread
}

// cancelBehind cancels a thread with its effects from another process; whoever was to answer may be killed meanwhile.
func (r *rig) cancelBehind(threadID string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := r.client.Cancel(r.t.Context(), thread.CancelRequest{Thread: threadID, Mode: thread.CancelCompensate, Reason: "by mistake"})
		done <- err
	}()
	return done
}

// undone wants one refund of the order, taken back once, and leaves the customer told.
func (r *rig) undone(threadID, order string) thread.View {
	r.t.Helper()
	q := r.asked(threadID)
	require.Equal(r.t, "notify", q.Node)
	_, err := r.answer(threadID, q.ID, "leave")
	require.NoError(r.t, err)
	view := r.wait(threadID, thread.StatusCancelled)
	require.Len(r.t, view.Cancel.Left, 1)
	require.Equal(r.t, "left, says ann", view.Cancel.Left[0].Reason)
	refunds, err := r.money.Refunds(r.t.Context(), order)
	require.NoError(r.t, err)
	require.Len(r.t, refunds, 1)
	require.NotNil(r.t, refunds[0].ReversedAt)
	require.Equal(r.t, int64(1), r.traffic().Reversals.Committed)
	require.Equal(r.t, int64(1), r.traffic().Refunds.Committed)
	require.NotNil(r.t, view.Cancel)
	require.Equal(r.t, thread.CancelCompensate, view.Cancel.Mode)
	return view
}

// madeAnew retries a thread whose refund was taken back: there is another refund, under a key of its own, and the customer
// was told once.
func (r *rig) madeAnew(threadID, order string) {
	r.t.Helper()
	_, err := r.client.Retry(r.t.Context(), thread.RetryRequest{Thread: threadID})
	require.NoError(r.t, err)
	view := r.wait(threadID, thread.StatusFinished)
	refunds, err := r.money.Refunds(r.t.Context(), order)
	require.NoError(r.t, err)
	require.Len(r.t, refunds, 2)
	require.NotNil(r.t, refunds[0].ReversedAt)
	require.Nil(r.t, refunds[1].ReversedAt)
	require.NotEqual(r.t, refunds[0].Key, refunds[1].Key)
	var receipt payments.Receipt
	require.NoError(r.t, json.Unmarshal(view.Output["receipt"], &receipt))
	require.Equal(r.t, refunds[1].ID, receipt.ID, "the state says what is there")
	var log []string
	require.NoError(r.t, json.Unmarshal(view.Output["log"], &log))
	require.Equal(r.t, 1, len(slices.DeleteFunc(log, func(line string) bool { return line != "customer told" })))
	effects, err := r.client.Effects(r.t.Context(), thread.EffectsRequest{Thread: threadID})
	require.NoError(r.t, err)
	states := map[string]int{}
	for _, e := range effects.Effects {
		states[e.Effect+" "+e.State]++
	}
	require.Equal(r.t, map[string]int{"payments.refund compensated": 1, "payments.refund committed": 1, "payments.notify committed": 1}, states)
}

// The target is down when the thread is retried: the run fails, and the next retry makes the refund, once.
func TestRetryBehindACompensationWithTheTargetDown(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker-1")
	threadID := r.refunding("o-11")
	require.NoError(t, <-r.cancelBehind(threadID))
	r.undone(threadID, "o-11")
	r.kill(r.service)
	_, err := r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.NoError(t, err)
	view := r.wait(threadID, thread.StatusFailed)
	require.Equal(t, "commit_refund", view.Failure.Node)
	r.startPayments(r.moneyURL[len("http://"):])
	r.madeAnew(threadID, "o-11")
}

// The worker dies while the thread is retried, with the new refund made and unanswered.
func TestWorkerKilledWhileItMakesAnew(t *testing.T) {
	r := newRig(t)
	r.payments()
	first := r.refundWorker("worker-1")
	threadID := r.refunding("o-11")
	require.NoError(t, <-r.cancelBehind(threadID))
	r.undone(threadID, "o-11")
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{Path: payments.PathRefunds, HangAfterCommit: 1}))
	_, err := r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.NoError(t, err)
	r.until("it is made again", func() bool { return r.traffic().Refunds.Committed == 2 })
	r.kill(first)
	r.refundWorker("worker-2")
	r.wait(threadID, thread.StatusFinished)
	_, err = r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.ErrorIs(t, err, thread.ErrNotFailed)
	require.Equal(t, int64(2), r.traffic().Refunds.Committed)
	require.Equal(t, int64(1), r.traffic().Notifications.Committed)
}

// The worker dies with the refund taken back and unanswered: another one asks first, and repeats it under the same key.
func TestWorkerKilledWhileItUndoes(t *testing.T) {
	r := newRig(t)
	r.payments()
	first := r.refundWorker("worker-1")
	threadID := r.refunding("o-11")
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{Path: payments.PathReversals, HangAfterCommit: 1}))
	cancelled := r.cancelBehind(threadID)
	r.until("the refund is taken back", func() bool { return r.traffic().Reversals.Committed == 1 })
	r.refundWorker("worker-2")
	r.kill(first)
	require.NoError(t, <-cancelled)
	view := r.undone(threadID, "o-11")
	require.Equal(t, "by mistake", view.Error)
	for _, key := range r.traffic().Reversals.ByKey {
		require.Equal(t, int64(2), key.Requests, "the second is answered from the first")
	}
	effects, err := r.client.Effects(t.Context(), thread.EffectsRequest{Thread: threadID})
	require.NoError(t, err)
	require.Equal(t, "payments.refund", effects.Effects[0].Effect)
	require.Equal(t, "compensated", effects.Effects[0].State)
	r.madeAnew(threadID, "o-11")
}

// The worker is killed wherever it happens to be while it undoes, again and again; the payments service dies with it.
func TestKilledAtRandomWhileUndoing(t *testing.T) {
	r := newRig(t)
	r.payments()
	worker := r.refundWorker("worker-0")
	thread := r.refunding("o-11")
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{Path: payments.PathReversals, SlowMS: 300}))
	cancelled := r.cancelBehind(thread)
	for i := range 3 {
		r.kill(worker)
		if i == 1 {
			r.restartPayments()
		}
		worker = r.refundWorker([]string{"worker-1", "worker-2", "worker-3"}[i])
		select { // some are killed on their way, some behind it
		case <-cancelled:
		case <-time.After(time.Duration(i) * 700 * time.Millisecond):
		}
	}
	r.undone(thread, "o-11")
	r.madeAnew(thread, "o-11")
}

// Without any worker the mode is stored; and whoever asks for less afterwards does not take it back.
func TestCancelWithoutAWorker(t *testing.T) {
	r := newRig(t)
	r.payments()
	first := r.refundWorker("worker-1")
	thread := r.refunding("o-11")
	r.kill(first)
	cancelled := r.cancelBehind(thread)
	require.NoError(t, <-cancelled)
	require.NoError(t, r.temporal.CancelWorkflow(t.Context(), thread, ""), "plainly, as Temporal's own tools do")
	r.refundWorker("worker-2")
	r.undone(thread, "o-11")
}
