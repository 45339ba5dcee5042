package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// A worker dies between two supersteps of one activity, and the next one inside an effect. What was recorded does not run
// again, and the effect is looked up. In exit mode nothing is recorded before the segment ends.
func TestWorkerKilledInsideASegment(t *testing.T) {
	again := map[string]int{"part 1": 1, "part 2": 1, "part 3": 1, "plan": 1, "flaky": 2, "gate": 2, "act": 2}
	fromTheStart := map[string]int{"part 1": 3, "part 2": 3, "part 3": 3, "plan": 3, "flaky": 4, "gate": 3, "act": 2}
	for _, mode := range []struct {
		name     string
		request  thread.StartRequest
		ran      map[string]int
		recorded bool
	}{
		{"fused", thread.StartRequest{Fused: true}, again, true},
		{"async", thread.StartRequest{Durability: superstep.DurabilityAsync}, again, true},
		{"exit", thread.StartRequest{Durability: superstep.DurabilityExit}, fromTheStart, false},
	} {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t)
			r.put("hang")
			first := r.graphsWorker("worker-1")
			req := mode.request
			req.Graph, req.Thread, req.Input = "fuses", testserver.Queue(t), encode(t, r.steered())
			_, err := r.client.Start(t.Context(), req)
			require.NoError(t, err)
			r.until("the gate is reached", func() bool { return r.ran("gate") == 1 })
			if mode.recorded {
				r.until("what was before is stored", func() bool { return r.recorded(req.Thread) >= 5 })
			}
			r.kill(first)
			second := r.graphsWorker("worker-2")
			r.until("the gate is reached again", func() bool { return r.ran("gate") == 2 })
			r.put("go")
			r.until("the file is written", func() bool { return r.ran("did") == 1 })
			if mode.recorded {
				r.until("the gate is stored too", func() bool { return r.recorded(req.Thread) >= 6 })
			}
			r.kill(second)
			r.graphsWorker("worker-3")
			q := r.asked(req.Thread)
			_, err = r.answer(req.Thread, q.ID, true)
			require.NoError(t, err)
			r.wait(req.Thread, thread.StatusFinished)

			ran := map[string]int{}
			for node := range mode.ran {
				ran[node] = r.ran(node)
			}
			require.Equal(t, mode.ran, ran)
			require.Equal(t, []int{1, 1, 1, 1}, []int{r.ran("did"), r.ran("found"), r.ran("inner"), r.ran("after")})
			log := value[[]string](r, req.Thread, "log")
			require.Equal(t, []string{"plan", "part 1", "part 2", "part 3", "flaky", "gate", "act"}, log[:7])
			require.Equal(t, "after", log[len(log)-1])
		})
	}
}

// recorded is how many outcomes the heartbeats of a thread's segment have stored.
func (r *rig) recorded(thread string) int {
	r.t.Helper()
	described, err := r.temporal.DescribeWorkflowExecution(r.t.Context(), thread, "")
	require.NoError(r.t, err)
	for _, pending := range described.GetPendingActivities() {
		if pending.GetHeartbeatDetails() == nil {
			continue
		}
		var progress graphadapter.Progress
		var record []byte
		require.NoError(r.t, converter.GetDefaultDataConverter().FromPayloads(pending.GetHeartbeatDetails(), &progress, &record))
		deliveries, err := segment.DecodeRecord(record)
		require.NoError(r.t, err)
		return len(deliveries)
	}
	return 0
}
