package e2e_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// A thread remembers: each run of it goes on from where the last one ended.
func TestAFinishedThreadGoesOn(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := testserver.Queue(t)
	for _, note := range []string{"a", "b", "c"} {
		r.again("adds", threadID, map[string]string{"note": note})
		r.wait(threadID, thread.StatusFinished)
	}
	require.Equal(t, []string{"a", "b", "c"}, value[[]string](r, threadID, "log"))
	history, err := r.client.History(t.Context(), thread.HistoryRequest{Thread: threadID})
	require.NoError(t, err)
	require.Len(t, history, 9, "three checkpoints a run: its input, what it begins with, what it wrote")
}

// Of several that continue a thread at the same moment, only one begins a run: what one wrote is never lost to another.
func TestOneContinuerWins(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := testserver.Queue(t)
	r.again("adds", threadID, map[string]string{"note": "0"})
	r.wait(threadID, thread.StatusFinished)

	begun := map[string]bool{}
	for range 5 {
		runs, errs := r.continueAtOnce(threadID, 2)
		r.wait(threadID, thread.StatusFinished)
		won := len(begun)
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, thread.ErrRunning)
				continue
			}
			require.False(t, begun[runs[i]], "two were told that they began the same run")
			begun[runs[i]] = true
		}
		require.Greater(t, len(begun), won, "nobody won")
		// One that came after the other one's run was over begins a run of its own.
		require.Len(t, value[[]string](r, threadID, "log"), 1+len(begun))
	}
}

// continueAtOnce gives a thread new input several times at once, and returns the ids of the runs that were begun.
func (r *rig) continueAtOnce(threadID string, times int) (runs []string, errs []error) {
	r.t.Helper()
	runs, errs = make([]string, times), make([]error, times)
	input := encode(r.t, map[string]string{"note": "x"})
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			view, err := r.client.Start(r.t.Context(), thread.StartRequest{Graph: "adds", Thread: threadID, Input: input})
			runs[i], errs[i] = view.RunID, err
		})
	}
	all.Wait()
	return runs, errs
}

func TestRetryRunsOnlyWhatDidNotFinish(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	r.put("go")
	r.put("broken")
	threadID := r.begin("pair", r.steered())
	view := r.wait(threadID, thread.StatusFailed)
	require.Contains(t, view.Error, "it is broken")
	require.Equal(t, []int{1, 1, 0}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})

	_, err := r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFailed) // and once more
	r.remove("broken")
	_, err = r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, []int{1, 3, 1}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})
	require.ElementsMatch(t, []string{"steady", "shaky", "after"}, value[[]string](r, threadID, "log"))
	_, err = r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
	require.ErrorIs(t, err, thread.ErrNotFailed)
}

// A cancelled run waits for its tasks, keeps what they did, and can be continued.
func TestCancelKeepsWhatFinished(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := r.begin("pair", r.steered())
	r.until("both nodes ran", func() bool { return r.ran("shaky") == 1 && r.ran("steady") == 1 })
	out := r.exits(0, r.superstep("cancel", threadID, "--reason", "changed my mind"))
	require.Contains(t, out.stdout, "cancelled")
	require.Equal(t, "changed my mind", r.wait(threadID, thread.StatusCancelled).Error)

	r.put("go")
	r.exits(0, r.superstep("retry", threadID))
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, []int{1, 2, 1}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})
	require.ElementsMatch(t, []string{"steady", "shaky", "after"}, value[[]string](r, threadID, "log"))
}

// The typed thread says the same over Temporal as in memory.
func TestTypedThread(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	r.put("go")
	r.put("broken")
	thread := pair().Thread(r.client, testserver.Queue(t))
	_, err := thread.Invoke(t.Context(), r.steered())
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "shaky", failed.Node)
	r.remove("broken")
	result, err := thread.Retry(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"steady", "shaky", "after"}, result.Output.Log.Get())
	past, err := thread.History(t.Context())
	require.NoError(t, err)
	before, err := thread.State(t.Context(), superstep.AtCheckpoint(past[1].Checkpoint))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"steady", "shaky"}, before.State.Log.Get())
}

// A run that was ended from outside said nothing at its end. A worker reads its state from its history, and the thread
// goes on.
func TestTerminatedThreadIsRetried(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	threadID := r.begin("refund", map[string]string{"order_id": "o-7"})
	q := r.asked(threadID)
	require.NoError(t, r.temporal.TerminateWorkflow(t.Context(), threadID, "", "somebody's mistake"))
	view := r.wait(threadID, thread.StatusTerminated)
	require.Contains(t, view.Error, "somebody's mistake")

	r.exits(0, r.superstep("retry", threadID))
	again := r.asked(threadID)
	require.Equal(t, q.ID, again.ID, "the same question of the same task")
	_, err := r.answer(threadID, again.ID, true)
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, int64(1), r.refundedOnce("o-7", 25_000).Requests)
}
