package e2e_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// shown is a command's -o json reply.
func shown[T any](r *rig, args ...string) (v T) {
	r.t.Helper()
	return shownBy[T](r, r.superstep(append(args, "-o", "json")...))
}

func shownBy[T any](r *rig, e ended) (v T) {
	r.t.Helper()
	out := r.exits(0, e)
	var plain bytes.Buffer // values keep their white space, which depends on how deep they are
	require.NoError(r.t, json.Compact(&plain, []byte(out.stdout)), out.stdout)
	require.NoError(r.t, json.Unmarshal(plain.Bytes(), &v), out.stdout)
	return v
}

func (r *rig) stateOf(threadID string, args ...string) thread.StateView {
	r.t.Helper()
	return shown[thread.StateView](r, append([]string{"state", threadID}, args...)...)
}

func (r *rig) historyOf(threadID string, args ...string) []thread.CheckpointView {
	r.t.Helper()
	return shown[[]thread.CheckpointView](r, append([]string{"history", threadID}, args...)...)
}

// stopped runs "chooses" on a new thread up to before "left".
func (r *rig) stopped() (thread string) {
	r.t.Helper()
	thread = testserver.Queue(r.t)
	input := string(encode(r.t, map[string]string{"dir": r.dir, "note": "left"}))
	out := r.exits(3, r.superstep("run", "chooses", "--thread", thread, "--input", input, "--interrupt-before", "left,right", "--follow"))
	require.Contains(r.t, out.stdout, "stopped, next left")
	return thread
}

// where finds the newest checkpoint after which a node comes next.
func where(t *testing.T, history []thread.CheckpointView, next string) string {
	t.Helper()
	for _, c := range history {
		if len(c.Next) == 1 && c.Next[0] == next {
			return c.Checkpoint
		}
	}
	require.Failf(t, "no such checkpoint", "next %s in %+v", next, history)
	return ""
}

func logOf(t *testing.T, v thread.StateView) (log []string) {
	t.Helper()
	require.NoError(t, json.Unmarshal(v.Values["log"], &log))
	return log
}

// What was is read, changed and run from again, across workers that were killed; and read without any worker.
func TestThePast(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker-1")
	thread := r.stopped()
	begun := r.historyOf(thread)
	require.Equal(t, []string{"left"}, begun[0].Next)

	out := r.exits(0, r.superstep("update", thread, "--values", `{"note":"right"}`, "--as-node", "first"))
	require.Contains(t, out.stdout, "next  right\nNext: ")
	require.Contains(t, out.stdout, "run chooses --thread "+thread+" --follow")
	live := r.stateOf(thread)
	require.Equal(t, []string{"right"}, live.Next)
	require.Equal(t, "update", live.Source)
	r.kill(worker)
	require.Equal(t, live, r.stateOf(thread), "read without a worker")
	updated := r.historyOf(thread)
	require.Equal(t, begun, updated[1:], "nothing of what was is lost")

	worker = r.graphsWorker("worker-2")
	require.Equal(t, live, r.stateOf(thread), "and by another worker")
	r.exits(0, r.superstep("run", "chooses", "--thread", thread, "--follow"))
	done := r.stateOf(thread)
	require.Equal(t, []string{"first", "right", "last"}, logOf(t, done))
	require.Equal(t, []int{1, 0, 1, 1}, []int{r.ran("first"), r.ran("left"), r.ran("right"), r.ran("last")})

	r.kill(worker)
	whole := r.historyOf(thread, "--values")
	require.Equal(t, done, r.stateOf(thread), "of an ended run")
	require.Equal(t, updated[:1], r.historyOf(thread, "--source", "update"))
	require.Len(t, r.historyOf(thread, "--limit", "2"), 2)
	require.Equal(t, begun[1:], r.historyOf(thread, "--before", begun[0].Checkpoint))
	for _, c := range whole {
		view := r.stateOf(thread, "--at", c.Checkpoint)
		require.Equal(t, c.Values, view.Values)
		require.Equal(t, c.Next, view.Next)
	}
	r.exits(6, r.superstep("update", thread, "--values", `{"note":"left"}`))
	r.exits(6, r.superstep("fork", thread, begun[0].Checkpoint))
	require.Equal(t, whole, r.historyOf(thread, "--values"))
}

// A fork runs again what came after a checkpoint: on the thread itself, or on a new one that leaves the old one alone.
func TestForks(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker-1")
	thread := r.stopped()
	r.exits(0, r.superstep("run", "chooses", "--thread", thread, "--interrupt-before", "", "--follow"))
	before := r.historyOf(thread)
	checkpoint := where(t, before, "left")

	copied := testserver.Queue(t)
	r.exits(0, r.superstep("fork", thread, checkpoint, "--as", copied, "--follow"))
	require.Equal(t, []string{"first", "left", "last"}, logOf(t, r.stateOf(copied)))
	require.Equal(t, before, r.historyOf(thread), "the old thread stays as it was")
	require.Equal(t, []int{1, 2, 2}, []int{r.ran("first"), r.ran("left"), r.ran("last")})
	still := testserver.Queue(t)
	require.Contains(t, r.exits(0, r.superstep("fork", copied, "--as", still, "--copy")).stdout, "copied  "+still)
	require.Equal(t, r.stateOf(copied).Values, r.stateOf(still).Values)
	require.Equal(t, []int{1, 2, 2}, []int{r.ran("first"), r.ran("left"), r.ran("last")}, "a copy runs nothing")
	out := r.exits(2, r.superstep("fork", thread, checkpoint, "--as", copied))
	require.Contains(t, out.stderr, "exists already")

	r.exits(0, r.superstep("fork", thread, checkpoint, "--follow"))
	require.Equal(t, []string{"first", "left", "last"}, logOf(t, r.stateOf(thread)))
	after := r.historyOf(thread)
	require.Equal(t, before, after[len(after)-len(before):], "the old branch is still there")
	require.Greater(t, len(after), len(before))

	// Changed and then run: a branch with another note.
	r.exits(0, r.superstep("update", thread, "--at", checkpoint, "--values", `{"note":"right"}`, "--as-node", "first"))
	r.exits(0, r.superstep("run", "chooses", "--thread", thread, "--follow"))
	require.Equal(t, []string{"first", "right", "last"}, logOf(t, r.stateOf(thread)))

	// New input at a checkpoint that was: what followed it is not part of the branch.
	input := string(encode(t, map[string]string{"dir": r.dir, "note": "left"}))
	r.exits(0, r.superstep("run", "chooses", "--thread", thread, "--from-checkpoint", checkpoint, "--input", input, "--follow"))
	require.Equal(t, []string{"first", "first", "left", "last"}, logOf(t, r.stateOf(thread)))
}

// The values of an update are reduced as a node's are, unless they say that they replace what is there.
func TestUpdatesAreReduced(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	thread := r.stopped()
	for _, values := range []string{`{"log":["a"]}`, `{"log":{"__overwrite__":["b"]}}`, `{"log":["d"]}`} {
		r.exits(0, r.superstep("update", thread, "--values", values, "--as-node", "left"))
	}
	require.Equal(t, []string{"b", "d"}, logOf(t, r.stateOf(thread)))
}

// An update survives whoever asked for it and whoever carries it out, and repeated by its name it is the same one.
func TestUpdateOutlivesItsClientAndItsWorker(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker-1")
	open := r.stopped()
	r.updateThroughCrashes(open, worker, "worker-2")
	r.exits(0, r.superstep("update", open, "--as-node", "__end__"))
	r.wait(open, thread.StatusFinished)

	t.Log("the same on a thread whose run is over")
	worker = r.graphsWorker("worker-3")
	r.updateThroughCrashes(open, worker, "worker-4")
}

// updateThroughCrashes kills the client and the workers while an update's branch is evaluated.
func (r *rig) updateThroughCrashes(thread string, worker interface{ Kill() error }, next string) {
	r.t.Helper()
	before, choices := r.historyOf(thread), r.ran("choice")
	update := []string{"update", thread, "--values", `{"note":"right"}`, "--as-node", "first", "--id", next}
	r.put("hold")
	asking := r.begun(update...)
	r.until("the branch is evaluated", func() bool { return r.ran("choice") > choices })
	require.NoError(r.t, asking.cmd.Process.Kill())
	asking.end()
	require.NoError(r.t, worker.Kill())
	again := r.begun(update...)
	r.remove("hold")
	r.graphsWorker(next)
	taken := again.end()
	r.until("the update is taken", func() bool { // who waited too long for a worker says so, and asks again
		if taken.code == 6 {
			taken = r.superstep(update...)
		}
		return taken.code != 6
	})
	r.exits(0, taken)

	state, history := r.stateOf(thread), r.historyOf(thread)
	require.Equal(r.t, []string{"right"}, state.Next)
	require.Equal(r.t, before, history[len(history)-len(before):])
	require.Len(r.t, history, len(before)+1, "applied once")
	r.exits(0, r.superstep(update...))
	require.Equal(r.t, history, r.historyOf(thread), "the same request again is no other update")
	require.Equal(r.t, state, r.stateOf(thread))
}

// What a fork runs again calls the outside again, under keys of its own: the old branch's are never used for it.
func TestAForkPaysUnderAKeyOfItsOwn(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	thread := testserver.Queue(t)
	input := string(encode(t, map[string]string{"order_id": r.order(1, 9_000)}))
	r.exits(3, r.superstep("run", "refund", "--thread", thread, "--input", input, "--interrupt-before", "commit_refund", "--follow"))
	// The service refuses to give back more than was paid, so each branch gives back a part.
	r.exits(0, r.superstep("update", thread, "--values", `{"amount":3000}`, "--as-node", "calculate"))
	r.exits(0, r.superstep("run", "refund", "--thread", thread, "--follow"))
	calculated := where(t, r.historyOf(thread), "commit_refund")
	for range 2 {
		r.exits(0, r.superstep("fork", thread, calculated, "--follow"))
	}
	require.Len(t, r.traffic().Refunds.ByKey, 3)
	for key, traffic := range r.traffic().Refunds.ByKey {
		require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, traffic, key)
	}
}
