package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// TestBusyIsNotAbsent: one worker has far more to do than it can at once, on two processors and with the usual time of silence after which
// it counts as lost. It does not count as lost: no node runs again, and nobody is told that no worker is there.
func TestBusyIsNotAbsent(t *testing.T) {
	for _, mode := range []struct {
		name    string
		request thread.StartRequest
	}{
		{"sync", thread.StartRequest{Durability: superstep.DurabilitySync}},
		{"async", thread.StartRequest{Durability: superstep.DurabilityAsync}},
		{"exit", thread.StartRequest{Durability: superstep.DurabilityExit}},
		{"fused", thread.StartRequest{Fused: true}},
	} {
		t.Run(mode.name, func(t *testing.T) { busyIsNotAbsent(t, mode.request) })
	}
}

func busyIsNotAbsent(t *testing.T, req thread.StartRequest) {
	const runs = 200
	r := newRigAt(t, testserver.Address(t)) // beside no other test of this package: it is this worker's load that counts
	r.lostAfter = superstep.DefaultLostAfter
	r.env = []string{"GOMAXPROCS=2"}
	r.graphsWorker("worker")
	threads, failed, began := make([]string, runs), make([]error, runs), time.Now()
	var all sync.WaitGroup
	for i := range runs {
		threads[i] = testserver.Queue(t)
		all.Go(func() {
			own := req
			own.Graph, own.Thread, own.Input = "brisk", threads[i], encode(t, r.steered())
			view, err := r.client.Start(t.Context(), own)
			for err == nil && view.Status == thread.StatusRunning {
				view, err = r.client.Wait(t.Context(), threads[i])
			}
			if err == nil && view.Status != thread.StatusFinished {
				err = fmt.Errorf("thread %s is %s: %s", threads[i], view.Status, view.Error)
			}
			failed[i] = err
		})
	}
	all.Wait()
	took := time.Since(began)
	for _, err := range failed {
		require.NoError(t, err)
	}

	again, timedOut, late := 0, 0, map[string]int{}
	for _, threadID := range threads {
		h := r.past(threadID)
		for _, attempt := range h.attempts {
			if attempt > 1 {
				again++
			}
		}
		timedOut += h.expired
		for _, kind := range h.late {
			late[kind.String()]++
		}
	}
	twice := 0
	ran := r.log()
	for _, threadID := range threads {
		for _, node := range briskly() {
			require.NotZero(t, ran[of(threadID, node)], "%s of thread %s", node, threadID)
			twice += ran[of(threadID, node)] - 1
		}
	}
	t.Logf("%d runs took %s: %d activities began again, %d timed out, %d nodes ran again; workflow tasks timed out: %v",
		runs, took.Round(time.Millisecond), again, timedOut, twice, late)
	require.Equal(t, []int{0, 0, 0}, []int{again, timedOut, twice})
}

// log counts the lines that nodes have noted.
func (r *rig) log() map[string]int {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "ran"))
	require.NoError(r.t, err)
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSuffix(line, "\n")]++
	}
	return times
}
