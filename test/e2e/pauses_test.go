package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
)

// modeFlags are the flags of run that choose a mode.
var modeFlags = map[string][]string{
	"sync": nil, "fused": {"--fused"}, "async": {"--durability", "async"}, "exit": {"--durability", "exit"},
}

// shows wants the status of a thread in what show and list say, and in the search attribute by which list finds it.
func (r *rig) shows(thread, status string, more ...string) {
	r.t.Helper()
	out := r.exits(0, r.superstep("show", thread))
	for _, text := range append(more, thread+"  "+status+"\n") {
		require.Contains(r.t, out.stdout, text)
	}
	r.until("it is listed as "+status, func() bool {
		for _, v := range shown[[]superstep.ThreadView](r, "list", "--status", status) {
			if v.Thread == thread {
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
			thread := testserver.Queue(t)
			r.putText("order.json", string(encode(t, r.steered())))
			r.exits(0, r.superstep(append([]string{"run", "settles", "--thread", thread, "--input", "@" + r.dir + "/order.json", "--hold"}, flags...)...))
			r.until("the node runs", func() bool { return r.ran("take") == 1 })
			out := r.exits(0, r.superstep("pause", thread, "--reason", "the books are closed", "--by", "ann"))
			require.Contains(t, out.stdout, "pausing  "+thread)
			r.kill(worker)
			r.put("go")
			r.graphsWorker("worker-2")
			r.wait(thread, superstep.StatusPaused)
			r.shows(thread, "paused", "ann", "the books are closed", "superstep unpause "+thread)
			require.Zero(t, r.ran("ship"))
			for _, said := range []string{"kept    paid", "repeated  paid"} { // it is one
				out = r.exits(0, r.superstep("event", thread, "paid", "--value", `"in full"`, "--id", "e-1"))
				require.Contains(t, out.stdout, said)
			}
			require.Len(t, shown[superstep.ThreadView](r, "show", thread).Kept, 1)
			r.exits(2, r.superstep("run", "settles", "--thread", thread))

			r.exits(0, r.superstep("unpause", thread))
			r.wait(thread, superstep.StatusFailed)
			r.shows(thread, "failed", "no ship", "held", "superstep retry "+thread)
			r.exits(0, r.superstep("retry", thread))
			r.wait(thread, superstep.StatusFailed)
			log := []string{"take", "paid in full"}
			if mode == "sync" || mode == "exit" {
				r.remove("broken")
				r.exits(0, r.superstep("retry", thread))
				log = append(log, "ship")
			} else {
				r.exits(0, r.superstep("update", thread, "--as-node", "ship", "--values", `{"log":["shipped by hand"]}`))
				log = append(log, "shipped by hand")
			}
			r.wait(thread, superstep.StatusFinished)
			r.shows(thread, "finished")
			require.Equal(t, log, value[[]string](r, thread, "log"))
			r.exits(5, r.superstep("event", thread, "paid"))
			out = r.exits(0, r.superstep("pause", thread))
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
			thread := testserver.Queue(t)
			out := r.exits(3, r.superstep(append([]string{"run", "settles", "--thread", thread, "--follow", "--input", string(encode(t, r.steered()))}, flags...)...))
			require.Contains(t, out.stdout, "superstep event "+thread+" paid")
			r.shows(thread, "waiting_event", "paid", "settle")
			out = r.exits(2, r.superstep("event", thread, "paid", "--value", "7"))
			require.Contains(t, out.stderr, "paid")
			r.kill(worker)
			for range 2 { // who does not know what became of it sends it again
				out = r.exits(0, r.superstep("event", thread, "paid", "--value", `"late"`, "--id", "e-1"))
				require.Contains(t, out.stdout, "stored  paid")
			}
			r.graphsWorker("worker-2")
			r.until("it is finished", func() bool { return r.settled(thread).Status == superstep.StatusFinished })
			require.Equal(t, []string{"take", "paid late", "ship"}, value[[]string](r, thread, "log"))
			require.Equal(t, []int{1, 1}, []int{r.ran("take"), r.ran("ship")})
			require.Empty(t, r.wait(thread, superstep.StatusFinished).Kept)
		})
	}
}
