package e2e_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	testrig "superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// TestKilledWhereARunIsContinued: a conversation whose run is continued as a new one behind every third turn loses its worker each time,
// right before the run is continued and right after it, and each turn is given twice. All are there once, in their order.
func TestKilledWhereARunIsContinued(t *testing.T) {
	t.Run("where it rests", func(t *testing.T) { killedWhereARunIsContinued(t, protocol.ContinueAt{Updates: 3, Life: 1}) })
	t.Run("under way", func(t *testing.T) {
		killedWhereARunIsContinued(t, protocol.ContinueAt{Updates: 3, MostUpdates: 3, Life: 1})
	})
}

func killedWhereARunIsContinued(t *testing.T, at protocol.ContinueAt) {
	r := newRig(t)
	temporal, err := client.DialContext(t.Context(), client.Options{HostPort: r.address, Logger: silent{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{testrig.ContinuedAt(at)}}})
	require.NoError(t, err)
	defer temporal.Close()
	c, err := superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: r.queue})
	require.NoError(t, err)
	moments := []string{"before continuation", "after continuation"}
	r.restart(func(n int) processes.Command { return r.fatedProgram("fated", moments[n%len(moments)]) })
	r.awaitPoller()
	const turns = 18
	threadID := testserver.Queue(t)
	var want []string
	for turn := range turns {
		note := fmt.Sprint("turn ", turn)
		want = append(want, note)
		req := thread.StartRequest{Graph: "adds", Thread: threadID, ID: note, Input: encode(t, map[string]string{"note": note}), KeepOpen: true}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				var err error
				assert.Eventually(t, func() bool { // who waited too long for a worker is told so, and gives the turn once more
					_, err = c.Start(t.Context(), req)
					return !errors.Is(err, thread.ErrNoWorker) && !errors.Is(err, thread.ErrBusy)
				}, patience, poll)
				assert.NoError(t, err)
			})
		}
		both.Wait()
		r.wait(threadID, thread.StatusFinished)
		require.Equal(t, want, value[[]string](r, threadID, "log"))
	}
	r.until("the worker of the last continuation is dead", func() bool { return r.continuations(threadID) == r.died(moments[1]) })
	continued := r.died(moments[1])
	t.Logf("the run was continued %d times, and %d workers died right before", continued, r.died(moments[0]))
	require.GreaterOrEqual(t, continued, turns/6, "a run takes three updates, of which each turn is one or, with a wait, two")
	require.Contains(t, []int{continued, continued + 1}, r.died(moments[0]), "each continuation was begun by one worker, and made by the next")
}

// continuations counts how often a thread's run was continued as a new one, from the first on.
func (r *rig) continuations(threadID string) (n int) {
	r.t.Helper()
	described, err := r.temporal.DescribeWorkflowExecution(r.t.Context(), threadID, "")
	require.NoError(r.t, err)
	run := r.continuedAs(threadID, described.GetWorkflowExecutionInfo().GetFirstRunId())
	for ; run != ""; n++ {
		run = r.continuedAs(threadID, run)
	}
	return n
}

// continuedAs is the run that a run was continued as; "" for none.
func (r *rig) continuedAs(threadID, run string) (next string) {
	r.t.Helper()
	events := r.temporal.GetWorkflowHistory(r.t.Context(), threadID, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(r.t, err)
		next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return next
}
