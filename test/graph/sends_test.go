package graph_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// window is how many tasks of a run are under way at once at most, as activities of their own: the server ends a run that has 2,000.
const window = 500

// spread is what many tasks of one superstep write to.
type spread struct {
	Did superstep.List[int] `json:"did"`
}

// TestManySends: a superstep of several windows of Sends calls each once, and what they write is in the order of the Sends; no more than a
// window is under way at any time.
func TestManySends(t *testing.T) {
	const sends = 2_000
	var calls [sends]atomic.Int32
	b := superstep.NewStateGraph[spread]("spread")
	b.AddCommandNode("plan", func(context.Context, spread) (superstep.Command[spread], error) {
		all := make([]int, sends)
		for n := range all {
			all[n] = n
		}
		return superstep.Command[spread]{Goto: superstep.SendEach("work", all)}, nil
	})
	superstep.AddInputNode(b, "work", func(_ context.Context, n int) (superstep.Command[spread], error) {
		calls[n].Add(1)
		var c superstep.Command[spread]
		c.Update.Did.Append(n)
		return c, nil
	})
	b.AddEdge(superstep.Start, "plan")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	began := time.Now()
	most := watchPending(t, s, th.ID())
	got, err := th.Invoke(t.Context(), spread{})
	require.NoError(t, err)
	seen := most()
	t.Logf("%d Sends took %v, and at most %d were seen under way at once", sends, time.Since(began), seen)
	require.Equal(t, thread.StatusFinished, got.Status)
	want := make([]int, sends)
	for n := range want {
		want[n] = n
		require.EqualValues(t, 1, calls[n].Load(), "Send %d", n)
	}
	require.Equal(t, want, got.Output.Did.Get())
	assert.LessOrEqual(t, seen, window)
	assert.Greater(t, seen, window/2, "the window is used")
	recorded, all := pendingInHistory(t, s, th.ID())
	assert.Equal(t, sends, all)
	assert.Equal(t, window, recorded, "by the history it is filled and no more")
}

// watchPending asks the server again and again how many activities of a thread are pending. The most that there were is what it returns when it
// is called, which ends the asking.
func watchPending(t *testing.T, s *rig.Server, threadID string) (most func() int) {
	ended, over := make(chan struct{}), make(chan int)
	go func() {
		seen := 0
		defer func() { over <- seen }()
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
			}
			described, err := s.Temporal.DescribeWorkflowExecution(t.Context(), threadID, "")
			var none *serviceerror.NotFound
			if errors.As(err, &none) { // it has not begun
				continue
			}
			if !assert.NoError(t, err) {
				return
			}
			seen = max(seen, len(described.GetPendingActivities()))
		}
	}()
	return func() int {
		close(ended)
		return <-over
	}
}

// pendingInHistory is how many activities were pending at once at most, and how many there were, by the histories of all runs of a thread.
func pendingInHistory(t *testing.T, s *rig.Server, threadID string) (most, all int) {
	t.Helper()
	described, err := s.Temporal.DescribeWorkflowExecution(t.Context(), threadID, "")
	require.NoError(t, err)
	for run := described.GetWorkflowExecutionInfo().GetFirstRunId(); run != ""; {
		events, pending, next := s.Temporal.GetWorkflowHistory(t.Context(), threadID, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT), 0, ""
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			switch e.GetEventType() {
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
				pending, all = pending+1, all+1
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED, enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
				enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
				pending--
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
				next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
			}
			most = max(most, pending)
		}
		require.Zero(t, pending, "of run %s", run)
		run = next
	}
	return most, all
}
