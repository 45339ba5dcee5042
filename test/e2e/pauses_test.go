package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// modeFlags are the flags of run that choose a mode.
var modeFlags = map[string][]string{
	"sync": nil, "fused": {"--fused"}, "async": {"--durability", "async"}, "exit": {"--durability", "exit"},
}

// shows wants the status of a thread in what show and list say, and in the search attribute by which list finds it.
func (r *rig) shows(threadID, status string, more ...string) {
	r.t.Helper()
	out := r.exits(0, r.superstep("show", threadID))
	for _, text := range append(more, threadID+"  "+status+"\n") {
		require.Contains(r.t, out.stdout, text)
	}
	r.until("it is listed as "+status, func() bool {
		for _, v := range shown[[]thread.View](r, "list", "--status", status) {
			if v.Thread == threadID {
				return true
			}
		}
		return false
	})
}

// A worker is killed while a pause is on its way to what it runs. The next one finds the run paused; events are kept
// meanwhile, and a failure is held open until it is mended, from the command line alone.
func TestPausedThenHeld(t *testing.T) {
	for mode, flags := range modeFlags {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t)
			worker := r.graphsWorker("worker-1")
			r.put("broken")
			threadID := testserver.Queue(t)
			r.putText("order.json", string(encode(t, r.steered())))
			r.exits(0, r.superstep(append([]string{"run", "settles", "--thread", threadID, "--input", "@" + r.dir + "/order.json", "--hold"}, flags...)...))
			r.until("the node runs", func() bool { return r.ran("take") == 1 })
			out := r.exits(0, r.superstep("pause", threadID, "--reason", "the books are closed", "--by", "ann"))
			require.Contains(t, out.stdout, "pausing  "+threadID)
			r.kill(worker)
			r.put("go")
			r.graphsWorker("worker-2")
			r.wait(threadID, thread.StatusPaused)
			r.shows(threadID, "paused", "ann", "the books are closed", "superstep unpause "+threadID)
			require.Zero(t, r.ran("ship"))
			for _, said := range []string{"kept    paid", "repeated  paid"} { // it is one
				out = r.exits(0, r.superstep("event", threadID, "paid", "--value", `"in full"`, "--id", "e-1"))
				require.Contains(t, out.stdout, said)
			}
			require.Len(t, shown[thread.View](r, "show", threadID).Kept, 1)
			r.exits(2, r.superstep("run", "settles", "--thread", threadID))

			r.exits(0, r.superstep("unpause", threadID))
			r.wait(threadID, thread.StatusFailed)
			r.shows(threadID, "failed", "no ship", "held", "superstep retry "+threadID)
			r.exits(0, r.superstep("retry", threadID))
			r.wait(threadID, thread.StatusFailed)
			log := []string{"take", "paid in full"}
			if mode == "sync" || mode == "exit" {
				r.remove("broken")
				r.exits(0, r.superstep("retry", threadID))
				log = append(log, "ship")
			} else {
				r.exits(0, r.superstep("update", threadID, "--as-node", "ship", "--values", `{"log":["shipped by hand"]}`))
				log = append(log, "shipped by hand")
			}
			r.wait(threadID, thread.StatusFinished)
			r.shows(threadID, "finished")
			require.Equal(t, log, value[[]string](r, threadID, "log"))
			r.exits(5, r.superstep("event", threadID, "paid"))
			out = r.exits(0, r.superstep("pause", threadID))
			require.Contains(t, out.stdout, "nothing to pause")
		})
	}
}

// A run waits for an event that comes while nobody works for it: it is stored, and the next worker goes on with it, once.
func TestAnEventOutlastsAllWorkers(t *testing.T) {
	for mode, flags := range modeFlags {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t)
			worker := r.graphsWorker("worker-1")
			r.put("go")
			threadID := testserver.Queue(t)
			out := r.exits(3, r.superstep(append([]string{"run", "settles", "--thread", threadID, "--follow", "--input", string(encode(t, r.steered()))}, flags...)...))
			require.Contains(t, out.stdout, "superstep event "+threadID+" paid")
			r.shows(threadID, "waiting_event", "paid", "settle")
			out = r.exits(2, r.superstep("event", threadID, "paid", "--value", "7"))
			require.Contains(t, out.stderr, "paid")
			r.kill(worker)
			for range 2 { // who does not know what became of it sends it again
				out = r.exits(0, r.superstep("event", threadID, "paid", "--value", `"late"`, "--id", "e-1"))
				require.Contains(t, out.stdout, "stored  paid")
			}
			r.graphsWorker("worker-2")
			r.until("it is finished", func() bool { return r.settled(threadID).Status == thread.StatusFinished })
			require.Equal(t, []string{"take", "paid late", "ship"}, value[[]string](r, threadID, "log"))
			require.Equal(t, []int{1, 1}, []int{r.ran("take"), r.ran("ship")})
			require.Empty(t, r.wait(threadID, thread.StatusFinished).Kept)
		})
	}
}

// A run that is paused within a superstep is to stop before its next one when it is drained, and is said to: it goes on with what it
// had begun once it is unpaused. One that was kept open when it had finished is closed by cancel.
func TestDrainedWhilePausedAndClosedWhenFinished(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker-1")
	threadID := testserver.Queue(t)
	r.exits(0, r.superstep("run", "settles", "--thread", threadID, "--keep-open", "--input", string(encode(t, r.steered()))))
	r.until("the node runs", func() bool { return r.ran("take") == 1 })
	r.exits(0, r.superstep("pause", threadID))
	r.put("go")
	r.wait(threadID, thread.StatusPaused)
	out := r.exits(0, r.own("drain", threadID).end())
	require.Contains(t, out.stdout, "draining  "+threadID+"  it is paused, and stops before its next step once it is unpaused")
	r.exits(0, r.superstep("event", threadID, "paid", "--value", `"in full"`))
	r.exits(0, r.superstep("unpause", threadID))
	r.wait(threadID, thread.StatusStopped)
	require.Zero(t, r.ran("ship"))
	r.exits(0, r.superstep("pause", threadID))
	r.wait(threadID, thread.StatusPaused)
	out = r.exits(0, r.own("drain", threadID).end())
	require.Contains(t, out.stdout, "nothing to drain")
	r.exits(0, r.superstep("unpause", threadID))
	r.exits(0, r.superstep("run", "settles", "--thread", threadID, "--follow"))

	out = r.exits(0, r.superstep("cancel", threadID))
	require.Contains(t, out.stdout, "closed  "+threadID+"  it had finished")
	r.shows(threadID, "finished", "closed")
	out = r.exits(0, r.superstep("cancel", threadID))
	require.Contains(t, out.stdout, "nothing to cancel  "+threadID+" is finished")
}
