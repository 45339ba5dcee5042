package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// stubborn takes more than the half second that is within its first workflow task: its second node does not look at its context for a
// second, so the run is handed over while it works.
func stubborn() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("stubborn")
	g.AddNode("quick", func(_ context.Context, s work) (work, error) { return ran(s, "quick") })
	g.AddNode("stubborn", func(_ context.Context, s work) (work, error) {
		s, err := ran(s, "stubborn")
		time.Sleep(time.Second)
		return s, err
	})
	g.AddNode("last", func(_ context.Context, s work) (work, error) { return ran(s, "last") })
	g.AddEdge(superstep.Start, "quick")
	g.AddEdge("quick", "stubborn")
	g.AddEdge("stubborn", "last")
	return g.MustCompile()
}

// TestKilledAtTheHandover: a worker dies right before, or right after, it tells the server that what it has begun within a workflow task
// goes on in an activity. Nothing of that is stored, so another one begins with the first node, once, in that one activity.
func TestKilledAtTheHandover(t *testing.T) {
	for _, mode := range []struct {
		name     string
		request  thread.StartRequest
		stubborn int // how often it runs: in fused sync mode it begins when the node before is stored, which it never was
	}{
		{"async", thread.StartRequest{Durability: superstep.DurabilityAsync}, 2},
		{"exit", thread.StartRequest{Durability: superstep.DurabilityExit}, 2},
		{"fused", thread.StartRequest{Fused: true}, 1},
	} {
		for _, moment := range []struct {
			name    string
			attempt int32                 // which one of the activity ends it: the server gave the dead worker the first with its reply
			late    []enumspb.TimeoutType // of workflow tasks
		}{
			{"before handover", 1, []enumspb.TimeoutType{enumspb.TIMEOUT_TYPE_START_TO_CLOSE}},
			{"after handover", 2, nil},
		} {
			t.Run(mode.name+", "+moment.name, func(t *testing.T) {
				r := newRig(t)
				first := r.start(r.fatedProgram("worker-1", moment.name))
				r.awaitPoller()
				req := mode.request
				req.Graph, req.Thread, req.Input = "stubborn", testserver.Queue(t), encode(t, r.steered())
				_, err := r.client.Start(t.Context(), req)
				require.NoError(t, err)
				<-first.Ended()
				require.Equal(t, 1, r.died(moment.name))
				require.Equal(t, []int{1, mode.stubborn - 1, 0}, []int{r.ran("quick"), r.ran("stubborn"), r.ran("last")}, "at the kill")
				r.graphsWorker("worker-2")
				// By the last event alone: a wait of ours would give the run a workflow task of its own, for the dead worker.
				require.NoError(t, r.temporal.GetWorkflow(t.Context(), req.Thread, "").Get(t.Context(), nil))

				require.Equal(t, []int{2, mode.stubborn, 1}, []int{r.ran("quick"), r.ran("stubborn"), r.ran("last")})
				require.Equal(t, []string{"quick", "stubborn", "last"}, value[[]string](r, req.Thread, "log"))
				h := r.past(req.Thread)
				require.Equal(t, []string{segment.SegmentActivity}, h.activities)
				require.Equal(t, []int32{moment.attempt}, h.attempts)
				require.Equal(t, 1, h.openings, "the second worker opens nothing of a run that it takes over")
				require.Equal(t, moment.late, h.late)
				require.Equal(t, 3, h.outcomes)
			})
		}
	}
}
