package wire_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev"
	"superstep.dev/examples/desk"
	"superstep.dev/thread"
)

type fields = map[string]any

// TestARunThatAnyClientStarts is listed, in the inbox, told of and answered as any run, and stores as its graph says.
func TestARunThatAnyClientStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	graph := "desk" + r.queue
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph, superstep.WithDurability(superstep.DurabilityAsync))}})
	threadID := "plain " + r.queue
	run := r.start(threadID, fields{"graph": graph, "input": fields{"do": "ask"}})

	var question string
	require.Eventually(t, func() bool {
		page, err := r.ours.Inbox(t.Context(), thread.InboxQuery{Graph: graph})
		require.NoError(t, err)
		if len(page.Questions) == 1 {
			assert.Equal(t, threadID, page.Questions[0].Thread)
			assert.Equal(t, graph, page.Questions[0].Graph)
			assert.Equal(t, "Deliver it?", page.Questions[0].Asks)
			question = page.Questions[0].Question
		}
		return question != ""
	}, patience, 50*time.Millisecond)
	listed, err := r.ours.List(t.Context(), thread.ListQuery{Graph: graph, Status: thread.StatusWaiting})
	require.NoError(t, err)
	require.Len(t, listed, 1)
	assert.Equal(t, []string{"ask"}, listed[0].Nodes)
	view, err := r.ours.Show(t.Context(), threadID)
	require.NoError(t, err)
	assert.Equal(t, superstep.DurabilityAsync, view.Durability)
	require.Eventually(t, func() bool { return len(r.told.of(threadID)) == 1 }, patience, 50*time.Millisecond, "nobody was told")

	_, err = r.ours.Resume(t.Context(), thread.ResumeRequest{Thread: threadID, Question: question, Value: json.RawMessage(`true`)})
	require.NoError(t, err)
	var result struct {
		Output struct {
			Log []string `json:"log"`
		} `json:"output"`
	}
	require.NoError(t, run.Get(t.Context(), &result))
	assert.Equal(t, []string{"read", "delivered"}, result.Output.Log)
	own, local := 0, 0
	history := r.temporal.GetWorkflowHistory(t.Context(), threadID, run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		if e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity" {
			local++
		}
		if strings.HasPrefix(e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(), "desk.") {
			own++
		}
	}
	assert.Zero(t, own, "no task is an activity of its own")
	assert.Positive(t, local, "it is to store as its graph says")
}

// TestABadInputIsRefused with an error that says what to send, and the run ends: nobody waits for it.
func TestABadInputIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	graph := "desk" + r.queue
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph)}})
	for name, c := range map[string]struct {
		sent []any
		says string
	}{
		"nothing":             {nil, `{"graph":"refund","input":{"order_id":"o-7"}}`},
		"no object":           {[]any{graph}, `{"graph":"refund","input":{"order_id":"o-7"}}`},
		"no graph":            {[]any{fields{"input": fields{}}}, "the graph's name is missing"},
		"no input":            {[]any{fields{"graph": graph}}, "there is no input to begin the thread with"},
		"a field of no input": {[]any{fields{"graph": graph, "input": fields{}, "durabilty": "async"}}, `unknown field "durabilty"`},
		"a mode of none":      {[]any{fields{"graph": graph, "input": fields{}, "durability": "never"}}, "there are sync, async and exit"},
		"a number below zero": {[]any{fields{"graph": graph, "input": fields{}, "step_timeout_ms": -1}}, "0 means no bound"},
		"another type":        {[]any{fields{"graph": graph, "input": fields{"do": 7}}}, "do"},
		"a channel of none":   {[]any{fields{"graph": graph, "input": fields{"dew": "ask"}}}, "dew"},
		"a breakpoint of none": {[]any{fields{"graph": graph, "input": fields{}, "options": fields{"interrupt_before": []string{"reed"}}}},
			"there is no such node, there are read, ask"},
		"input and a command": {[]any{fields{"graph": graph, "input": fields{}, "command": fields{}}}, "do not go with it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			threadID := name + " " + r.queue
			err := r.start(threadID, c.sent...).Get(t.Context(), nil)
			var refused *temporal.ApplicationError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "superstep.BadInput", refused.Type())
			assert.Contains(t, refused.Message(), c.says)
			view, err := r.ours.Show(t.Context(), threadID)
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFailed, view.Status)
			// The thread has not begun, and may: who made the mistake mends it under the same id.
			_, err = r.ours.Start(t.Context(), thread.StartRequest{Graph: graph, Thread: threadID, Input: []byte(`{"do":"read"}`)})
			assert.NoError(t, err)
		})
	}
}

// TestARunThatNoWorkerHasHad is shown with its graph all the same.
func TestARunThatNoWorkerHasHad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start(r.queue, fields{"graph": "desk", "input": fields{"do": "ask"}})
	view, err := r.ours.Show(t.Context(), r.queue)
	require.NoError(t, err)
	assert.Equal(t, "desk", view.Graph)
	assert.Equal(t, thread.StatusRunning, view.Status)
	r.start("none "+r.queue, "no object")
	view, err = r.ours.Show(t.Context(), "none "+r.queue)
	require.NoError(t, err)
	assert.Empty(t, view.Graph)
}

// TestAWorkerThatCannotAskWhatIsThere lets its runs wait instead of hiding them from lists for good.
func TestAWorkerThatCannotAskWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var works atomic.Bool // a worker describes the namespace by itself before it works
	var refused atomic.Int32
	mute := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/DescribeNamespace") && works.Load() && refused.Add(1) <= 2 {
			return status.Error(codes.Internal, "not now")
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	var err error
	r.temporal, err = client.Dial(client.Options{HostPort: r.address,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(mute)}}})
	require.NoError(t, err)
	t.Cleanup(r.temporal.Close)
	graph := "desk" + r.queue
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph(graph)}})
	works.Store(true)
	r.start(r.queue, fields{"graph": graph, "input": fields{"do": "ask"}})
	assert.Equal(t, r.queue, r.asked(graph).Thread)
	assert.Greater(t, refused.Load(), int32(2))
}
