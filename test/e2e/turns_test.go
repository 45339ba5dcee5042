package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// TestKilledBetweenTurns: a conversation has a run of its own for each turn. The worker is killed at any moment, and so is who gives it the
// turn, who then gives it once more unless the thread has it: every turn is there once, in its place, for a process that knows nothing.
func TestKilledBetweenTurns(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	values := filepath.Join(r.dir, "values")
	r.flags = []string{"--storage", values}
	kept, err := storage.Files(values, storage.Options{})
	require.NoError(t, err)
	r.client, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue, Storage: kept})
	require.NoError(t, err)
	worker, threadID := r.graphsWorker("worker"), testserver.Queue(t)
	const turns, most = 36, 300 * time.Millisecond
	text := func(turn int) string {
		return fmt.Sprintf("turn %d %s", turn, strings.Repeat(fmt.Sprint(seed+uint64(turn)), 60))
	}
	lost := 0
	for turn := 0; turn < turns; {
		run := r.begun("run", "adds", "--thread", threadID, "--input", fmt.Sprintf(`{"note":%q}`, text(turn)), "--storage", values)
		if random.IntN(2) == 0 {
			// Not a wait for anything: the moment of the kill is what is random.
			time.Sleep(time.Duration(random.Int64N(int64(most))))
			killed(run)
		}
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(most))))
			r.kill(worker)
			worker = r.graphsWorker("worker")
		}
		run.end()
		if turn == 0 && !r.has(threadID) {
			continue
		}
		r.wait(threadID, thread.StatusFinished)
		switch log := value[[]string](r, threadID, "log"); len(log) {
		case turn + 1:
			turn++
		case turn:
			lost++
		default:
			t.Fatalf("turn %d: there are %d", turn, len(log))
		}
	}
	t.Logf("%d turns did not begin", lost)
	fresh, err := storage.Files(values, storage.Options{})
	require.NoError(t, err)
	r.client, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue, Storage: fresh})
	require.NoError(t, err)
	for turn, got := range value[[]string](r, threadID, "log") {
		require.Equal(t, text(turn), got)
	}
}

// has reports whether there is a thread.
func (r *rig) has(threadID string) bool {
	_, err := r.client.Show(r.t.Context(), threadID)
	if err != nil {
		require.ErrorIs(r.t, err, thread.ErrNotFound)
	}
	return err == nil
}
