package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev"
	"superstep.dev/examples/desk"
	"superstep.dev/thread"
)

// request is what a workflow of a test runs a graph with.
type request struct {
	Graph, Queue, Thread, Do string
	Wait                     bool // for the run's end, when it is cancelled
}

// outcome is what it returns: what a workflow does with a graph's run.
type outcome struct {
	Log    []string
	Thread string
	Status thread.Status
	Node   string
	Error  string
}

// business is somebody's workflow.
func business(ctx workflow.Context, r request) (outcome, error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: r.Thread, TaskQueue: r.Queue, WaitForCancellation: r.Wait})
	var input desk.Order
	input.Do.Set(r.Do)
	run := superstep.ExecuteGraph(ctx, desk.Graph(r.Graph), input, superstep.WithRequester("rita"))
	thread, _, err := run.Started(ctx)
	if err != nil {
		return outcome{}, err
	}
	selector, done := workflow.NewSelector(ctx), false
	selector.AddFuture(run.Future(), func(workflow.Future) { done = true })
	for !done {
		selector.Select(ctx)
	}
	order, err := run.Get(ctx)
	out := outcome{Thread: thread, Log: order.Log.Get()}
	var failed *superstep.RunError
	if !errors.As(err, &failed) || temporal.IsCanceledError(err) && ctx.Err() != nil {
		return out, err
	}
	out.Status, out.Error = failed.Status, failed.Message
	var node *superstep.NodeError
	if errors.As(err, &node) {
		out.Node = node.Node
	}
	return out, nil
}

// parent serves business beside the graph's worker, and starts it.
func (r *rig) parent(req request) client.WorkflowRun {
	r.t.Helper()
	queue := r.queue + "-own"
	w := worker.New(r.temporal, queue, worker.Options{StickyScheduleToStartTimeout: time.Second})
	w.RegisterWorkflow(business)
	require.NoError(r.t, w.Start())
	r.t.Cleanup(w.Stop)
	req.Queue = r.queue
	run, err := r.temporal.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{ID: "parent " + r.queue, TaskQueue: queue}, business, req)
	require.NoError(r.t, err)
	return run
}

// asked waits for the one question in the inbox of a graph.
func (r *rig) asked(graph string) thread.InboxItem {
	r.t.Helper()
	var asked []thread.InboxItem
	require.Eventually(r.t, func() bool {
		page, err := r.ours.Inbox(r.t.Context(), thread.InboxQuery{Graph: graph})
		require.NoError(r.t, err)
		asked = page.Questions
		return len(asked) == 1 && asked[0].Question != "" // the index may still have what a run before asked
	}, patience, 50*time.Millisecond)
	return asked[0]
}

// TestAGraphFromOnesOwnWorkflow is a thread like any other: it is listed, asks in the inbox, and its output is the workflow's.
func TestAGraphFromOnesOwnWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	graph := "desk" + r.queue
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph)}})
	threadID := "child " + r.queue
	run := r.parent(request{Graph: graph, Thread: threadID, Do: "ask"})
	question := r.asked(graph)
	assert.Equal(t, threadID, question.Thread)
	listed, err := r.ours.List(t.Context(), thread.ListQuery{Graph: graph})
	require.NoError(t, err)
	require.Len(t, listed, 1)
	assert.Equal(t, thread.StatusWaiting, listed[0].Status)
	described, err := r.temporal.DescribeWorkflowExecution(t.Context(), threadID, "")
	require.NoError(t, err)
	assert.Contains(t, described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields(), "SuperstepParent")

	_, err = r.ours.Resume(t.Context(), thread.ResumeRequest{Thread: threadID, Question: question.Question, Value: json.RawMessage(`true`)})
	require.NoError(t, err)
	var out outcome
	require.NoError(t, run.Get(t.Context(), &out))
	assert.Equal(t, outcome{Thread: threadID, Log: []string{"read", "delivered"}}, out)
}

// bulk is the state of a graph with more output than stands in a run's result apart from its state.
type bulk struct {
	Text superstep.Value[string] `json:"text"`
}

func pile(name string) *superstep.Graph[bulk] {
	g := superstep.NewStateGraph[bulk](name)
	g.AddNode("pile", func(_ context.Context, s bulk) (bulk, error) {
		s.Text.Set(strings.Repeat("x", 100<<10))
		return s, nil
	})
	g.AddEdge(superstep.Start, "pile")
	return g.MustCompile()
}

// TestALargeOutput reaches the workflow as any other.
func TestALargeOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	graph := pile("pile" + r.queue)
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{graph}})
	w := worker.New(r.temporal, r.queue+"-own", worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (int, error) {
		out, err := superstep.ExecuteGraph(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{TaskQueue: r.queue}), graph, bulk{}).Get(ctx)
		return len(out.Text.Get()), err
	}, workflow.RegisterOptions{Name: "bulky"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	run, err := r.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: r.queue + "-own"}, "bulky")
	require.NoError(t, err)
	var bytes int
	require.NoError(t, run.Get(t.Context(), &bytes))
	assert.Equal(t, 100<<10, bytes)
}

// TestAGraphThatFailsInOnesOwnWorkflow says which node, and why.
func TestAGraphThatFailsInOnesOwnWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	graph := "desk" + r.queue
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph)}})
	var out outcome
	require.NoError(t, r.parent(request{Graph: graph, Do: "fail"}).Get(t.Context(), &out))
	assert.Equal(t, thread.StatusFailed, out.Status)
	assert.Equal(t, "fail", out.Node)
	assert.Contains(t, out.Error, "there is no amount")
	assert.NotEmpty(t, out.Thread, "Temporal gives it an id")
}

// TestAGraphEndsWithItsParent, when that is cancelled, and with what it had finished: the parent waits for it when it is told to.
func TestAGraphEndsWithItsParent(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"and the parent waits": true, "by the close policy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			graph := "desk" + r.queue
			r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph)}})
			threadID := "child " + r.queue
			run := r.parent(request{Graph: graph, Thread: threadID, Do: "ask", Wait: waits})
			r.asked(graph)
			require.NoError(t, r.temporal.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
			require.True(t, temporal.IsCanceledError(run.Get(t.Context(), nil)))
			if !waits {
				_ = r.temporal.GetWorkflow(t.Context(), threadID, "").Get(t.Context(), nil)
			}
			view, err := r.ours.Show(t.Context(), threadID)
			require.NoError(t, err)
			assert.Equal(t, thread.StatusCancelled, view.Status)
			_, err = r.ours.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
			require.NoError(t, err, "it is a thread like any other")
			assert.Equal(t, threadID, r.asked(graph).Thread)
		})
	}
}

// TestABadInputIsRefusedInOnesOwnWorkflow before anything is started.
func TestABadInputIsRefusedInOnesOwnWorkflow(t *testing.T) {
	t.Parallel()
	_, err := superstep.ScheduleAction(desk.Graph("desk"), "nightly", json.RawMessage(`{"do":7}`))
	require.ErrorIs(t, err, thread.ErrBadInput)
	_, err = superstep.ScheduleAction(desk.Graph("desk"), "nightly", json.RawMessage(`{}`), superstep.WithDurability("never"))
	require.ErrorIs(t, err, thread.ErrBadInput)
	_, err = superstep.ScheduleAction(desk.Graph("desk"), "", json.RawMessage(`{}`))
	require.ErrorIs(t, err, thread.ErrBadInput)
	_, err = superstep.ScheduleAction(desk.Graph("desk"), "nightly", nil)
	require.ErrorIs(t, err, thread.ErrBadInput)
}

// TestAScheduleStartsRuns, each a thread of its own that is listed and asks as any other.
func TestAScheduleStartsRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	graph := "desk" + r.queue
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph)}})
	var input desk.Order
	input.Do.Set("ask")
	action, err := superstep.ScheduleAction(desk.Graph(graph), "nightly "+r.queue, input, superstep.WithFused())
	require.NoError(t, err)
	action.TaskQueue = r.queue
	schedule, err := r.temporal.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: "schedule " + r.queue, Action: action, Paused: true,
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, schedule.Delete(context.Background())) })
	require.NoError(t, schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	question := r.asked(graph)
	assert.Contains(t, question.Thread, "nightly "+r.queue)
	_, err = r.ours.Resume(t.Context(), thread.ResumeRequest{Thread: question.Thread, Question: question.Question, Value: json.RawMessage(`false`)})
	require.NoError(t, err)
	view, err := r.ours.Wait(t.Context(), question.Thread)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, view.Status)
	assert.JSONEq(t, `["read","kept"]`, string(view.Output["log"]))
}
