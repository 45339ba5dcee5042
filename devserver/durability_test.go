package main_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	queue = "devserver-test"

	// nap is long enough for the devserver to stop and start again meanwhile, so
	// that the timer fires in its second life.
	nap = 45 * time.Second
)

// waitForBoth waits for a timer and for a signal, and returns what the signal
// said.
func waitForBoth(ctx workflow.Context, d time.Duration) (string, error) {
	timer := workflow.NewTimer(ctx, d)
	var said string
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &said)
	return said, timer.Get(ctx, nil)
}

// onBoth runs a test on each kind of database; flags name one that is new.
func onBoth(t *testing.T, test func(t *testing.T, flags []string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, []string{"--db", filepath.Join(t.TempDir(), "runs.db")})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, []string{"--postgres", postgres(t).dsn("me", newDatabase())})
	})
}

func startOn(t *testing.T, flags []string) *running {
	t.Helper()
	return ready(t, launch(t, append(flags, "--port", "0", "--headless")...))
}

func startWorker(t *testing.T, c client.Client) worker.Worker {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(waitForBoth)
	require.NoError(t, w.Start())
	return w
}

// A run that waits on a timer and has a signal nobody has read yet goes on after
// the server was stopped and started again, on another port.
func TestRestartGoesOnWithOpenRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, goesOnWithOpenRuns)
}

func goesOnWithOpenRuns(t *testing.T, flags []string) {
	t.Helper()
	ctx := within(t, 10*time.Minute)

	first := startOn(t, flags)
	c := dial(t, first.address)
	w := startWorker(t, c)
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:        "open",
		TaskQueue: queue,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword("SuperstepGraph").ValueSet("refund"),
			temporal.NewSearchAttributeKeyKeywordList("SuperstepNodes").ValueSet([]string{"approval", "notify"}),
			temporal.NewSearchAttributeKeyInt64("SuperstepQuestions").ValueSet(1),
		),
	}, waitForBoth, nap)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return hasEvent(ctx, c, "open", enumspb.EVENT_TYPE_TIMER_STARTED) }, startTimeout, poll)
	w.Stop()
	require.NoError(t, c.SignalWorkflow(ctx, "open", run.GetRunID(), "say", "hello"))
	require.Zero(t, first.stop(t))
	require.Empty(t, first.stderr.String())

	second := startOn(t, flags)
	c = dial(t, second.address)
	require.False(t, hasEvent(ctx, c, "open", enumspb.EVENT_TYPE_TIMER_FIRED), "the timer is pending across the restart")
	require.Eventually(t, func() bool {
		return listed(ctx, t, c, `SuperstepGraph = 'refund' AND SuperstepNodes = 'notify' AND SuperstepQuestions > 0`) == 1
	}, startTimeout, poll)

	w = startWorker(t, c)
	defer w.Stop()
	var said string
	require.NoError(t, c.GetWorkflow(ctx, "open", run.GetRunID()).Get(ctx, &said))
	require.Equal(t, "hello", said)
	require.True(t, hasEvent(ctx, c, "open", enumspb.EVENT_TYPE_TIMER_FIRED))
	w.Stop()
	require.Zero(t, second.stop(t))
	require.Empty(t, second.stderr.String())
}

// The devserver is killed while several callers start runs and signal them.
// Whatever call was answered before the kill is found after it.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	onBoth(t, losesNothingAcknowledged)
}

func losesNothingAcknowledged(t *testing.T, flags []string) {
	t.Helper()
	ctx := within(t, 10*time.Minute)

	first := startOn(t, flags)
	c := dial(t, first.address)
	const callers, enough = 4, 40
	acks := make(chan string)
	var wg sync.WaitGroup
	calling, stopCalling := context.WithCancel(ctx)
	defer stopCalling()
	for caller := range callers {
		wg.Go(func() { startAndSignal(calling, c, caller, acks) })
	}
	go func() {
		wg.Wait()
		close(acks)
	}()
	acknowledged := map[string]bool{}
	for id := range acks {
		acknowledged[id] = true
		if len(acknowledged) == enough {
			first.kill(t)
			stopCalling()
		}
	}
	require.GreaterOrEqual(t, len(acknowledged), enough)

	second := startOn(t, flags)
	c = dial(t, second.address)
	for id := range acknowledged {
		require.True(t, hasEvent(ctx, c, id, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), "run %s and its signal", id)
		// The record for lists is written later than the run, and after the kill if need be.
		require.Eventually(t, func() bool { return listed(ctx, t, c, "WorkflowId = '"+id+"'") == 1 }, startTimeout, poll)
	}
	require.Zero(t, second.stop(t))
	require.Empty(t, second.stderr.String())
}

// startAndSignal starts runs and signals each, until a call fails, and sends the
// ids of those for which both calls were answered.
func startAndSignal(ctx context.Context, c client.Client, caller int, acks chan<- string) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("run-%d-%d", caller, i)
		if _, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, waitForBoth, nap); err != nil {
			return
		}
		if err := c.SignalWorkflow(ctx, id, "", "say", "hello"); err != nil {
			return
		}
		acks <- id
	}
}

// listed counts the runs that the index finds, up to a page.
func listed(ctx context.Context, t *testing.T, c client.Client, query string) int {
	t.Helper()
	found, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
	require.NoError(t, err)
	return len(found.GetExecutions())
}

// hasEvent tells whether the history of a run has an event of the given type. A
// run that is not there has none.
func hasEvent(ctx context.Context, c client.Client, id string, want enumspb.EventType) bool {
	events := c.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return false
		}
		if event.GetEventType() == want {
			return true
		}
	}
	return false
}
