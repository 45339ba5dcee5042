package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/serving"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

const (
	// patience bounds every wait of a test.
	patience = 2 * time.Minute

	// lostAfter is a silence that a busy machine seldom reaches: most tests count how often a node ran. Those that lose a worker wait for it.
	lostAfter = 8 * time.Second
)

// silent keeps the SDK's log lines out of the tests' output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// line is the connection of one worker to the server: it counts heartbeats, and can be cut.
type line struct {
	mu    sync.Mutex
	beats []*workflowservice.RecordActivityTaskHeartbeatRequest
	cut   error
	once  bool          // the cut is mended when a task has failed
	ice   bool          // nothing of its tasks gets through, as if the process were frozen
	mute  bool          // failures of tasks do not get through, as if the worker had died before it reported them
	heard chan struct{} // closed at the first heartbeat
	still chan struct{} // until it is closed, no workflow task gets through; nil when they do
	freed []string      // the runs whose sticky task queues were reset
}

func newLine() *line { return &line{heard: make(chan struct{})} }

// intercept is the line's part in a call of the server.
func (l *line) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if beat, ok := req.(*workflowservice.RecordActivityTaskHeartbeatRequest); ok {
		l.mu.Lock()
		l.beats = append(l.beats, beat)
		if len(l.beats) == 1 {
			close(l.heard)
		}
		cut := l.cut
		l.mu.Unlock()
		if cut != nil {
			return cut
		}
	}
	if reset, ok := req.(*workflowservice.ResetStickyTaskQueueRequest); ok {
		l.mu.Lock()
		l.freed = append(l.freed, reset.GetExecution().GetWorkflowId()+" "+reset.GetExecution().GetRunId())
		l.mu.Unlock()
	}
	if l.frozen() && strings.Contains(method, "ActivityTask") {
		<-ctx.Done()
		return ctx.Err()
	}
	if _, ok := req.(*workflowservice.RespondActivityTaskFailedRequest); ok {
		if l.muted() {
			return status.Error(codes.InvalidArgument, "no line")
		}
		l.mend()
	}
	err := call(ctx, method, req, reply, conn, opts...)
	if _, ok := req.(*workflowservice.PollWorkflowTaskQueueRequest); ok && l.holdsBack(ctx) {
		return status.Error(codes.Unavailable, "no line")
	}
	return err
}

// holdBack keeps workflow tasks from the worker until free is called: what it is given by then is lost to it.
func (l *line) holdBack() (free func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	still := make(chan struct{})
	l.still = still
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.still = nil
		close(still)
	}
}

// holdsBack waits while workflow tasks are held back, and reports whether they were.
func (l *line) holdsBack(ctx context.Context) bool {
	l.mu.Lock()
	still := l.still
	l.mu.Unlock()
	if still == nil {
		return false
	}
	select {
	case <-still:
	case <-ctx.Done():
	}
	return true
}

// cutOff makes heartbeats fail from now on.
func (l *line) cutOff(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = err
}

// cutOnce makes heartbeats fail until a task reports its failure.
func (l *line) cutOnce(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.once = err, true
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.once {
		l.cut, l.once = nil, false
	}
}

// muffle keeps failures of tasks from being reported from now on, or no longer.
func (l *line) muffle(mute bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute = mute
}

// freeze keeps everything about activities from getting through from now on.
func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ice = true
}

func (l *line) frozen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ice
}

func (l *line) muted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mute
}

func (l *line) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.beats)
}

// rig is a client of the test server and a task queue of the test's own.
type rig struct {
	t      *testing.T
	ctx    context.Context
	client client.Client
	queue  string
	// lostAfter is after how much silence the workers that the test starts are taken for lost.
	lostAfter time.Duration
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, queue: testserver.Queue(t), lostAfter: lostAfter}
	r.client = r.dial(newLine())
	return r
}

func (r *rig) dial(l *line) client.Client {
	r.t.Helper()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(r.t), Logger: silent{},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(l.intercept)}}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// work starts a worker on a line of its own. It ends with the test, or when stop is called; then it first waits for
// what it runs.
func (r *rig) work(graphs ...*graphadapter.Graph) (l *line, stop func()) {
	r.t.Helper()
	l = newLine()
	c := r.dial(l)
	// The SDK takes a workflow that computes for a second for one that hangs; with the race detector one of 500 tasks may.
	w := worker.New(c, r.queue, worker.Options{StickyScheduleToStartTimeout: time.Second, WorkerStopTimeout: 20 * time.Second,
		DeadlockDetectionTimeout: 20 * time.Second})
	serving.Register(w, c, serving.Config{Graphs: graphs, LostAfter: r.lostAfter})
	w.RegisterWorkflow(oneTask)
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	var once sync.Once
	stop = func() { once.Do(w.Stop) }
	r.t.Cleanup(stop)
	return l, stop
}

// start starts a run of a new thread.
func (r *rig) start(in protocol.GraphInput) client.WorkflowRun {
	r.t.Helper()
	return r.startAs(testserver.Queue(r.t), in)
}

// startAs is start for the thread of that id.
func (r *rig) startAs(id string, in protocol.GraphInput) client.WorkflowRun {
	r.t.Helper()
	if in.Input.Value == nil {
		in.Input = protocol.Input{Value: pregel.Value(`{}`)}
	}
	run, err := r.client.ExecuteWorkflow(r.ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: r.queue, WorkflowTaskTimeout: 3 * time.Second,
		Memo: map[string]any{protocol.MemoGraph: in.Graph},
	}, protocol.GraphWorkflow, in)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// oneTask runs one task of a graph and returns its outcome.
func oneTask(ctx workflow.Context, req graphadapter.NodeRequest) (pregel.Outcome, error) {
	req.OriginalRunID = workflow.GetInfo(ctx).OriginalRunID
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: patience, HeartbeatTimeout: lostAfter, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: time.Second},
	})
	var outcome pregel.Outcome
	err := workflow.ExecuteActivity(ctx, req.Graph+"."+req.Task.Node, req).Get(ctx, &outcome)
	return outcome, err
}

// task runs one task of a graph.
func (r *rig) task(graph string, task pregel.Task) client.WorkflowRun {
	r.t.Helper()
	run, err := r.client.ExecuteWorkflow(r.ctx, client.StartWorkflowOptions{
		ID: testserver.Queue(r.t), TaskQueue: r.queue, WorkflowTaskTimeout: 3 * time.Second,
	}, oneTask, graphadapter.NodeRequest{Graph: graph, Thread: "r-7", Task: task, LedgerBytes: 128 << 10,
		Context: pregel.Value(`{"tenant":"acme"}`)})
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// outcome waits for the outcome of a run made by task.
func (r *rig) outcome(run client.WorkflowRun) pregel.Outcome {
	r.t.Helper()
	var outcome pregel.Outcome
	if err := run.Get(r.ctx, &outcome); err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

// log waits for a run's end and returns what its nodes wrote.
func (r *rig) log(run client.WorkflowRun) string {
	r.t.Helper()
	var result protocol.GraphResult
	if err := run.Get(r.ctx, &result); err != nil {
		r.t.Fatal(err)
	}
	return string(result.Output["log"])
}

// pending waits for a pending activity of a run that is as wanted.
func (r *rig) pending(run client.WorkflowRun, what string, wanted func(*workflowservice.DescribeWorkflowExecutionResponse) bool) *workflowservice.DescribeWorkflowExecutionResponse {
	r.t.Helper()
	var last *workflowservice.DescribeWorkflowExecutionResponse
	await(r.t, what, func() bool {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), run.GetRunID())
		last = described
		return err == nil && wanted(described)
	}, func() any { return last })
	return last
}

// question waits for a run's question.
func (r *rig) question(run client.WorkflowRun) pregel.OpenQuestion {
	r.t.Helper()
	var s protocol.State
	await(r.t, "the question", func() bool {
		v, err := r.client.QueryWorkflow(r.ctx, run.GetID(), run.GetRunID(), protocol.QueryState)
		return err == nil && v.Get(&s) == nil && len(s.Questions) > 0
	}, func() any { return s })
	return s.Questions[0]
}

// events counts the run's events of a type.
func (r *rig) events(run client.WorkflowRun, kind enumspb.EventType) int {
	r.t.Helper()
	n := 0
	history := r.client.GetWorkflowHistory(r.ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if e.GetEventType() == kind {
			n++
		}
	}
	return n
}

// await waits for a condition; seen is shown when it does not come.
func await(t *testing.T, what string, condition func() bool, seen func() any) {
	t.Helper()
	awaitLong(t, patience, what, condition, seen)
}

// awaitLong is await with another patience.
func awaitLong(t *testing.T, patience time.Duration, what string, condition func() bool, seen func() any) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			text, _ := json.Marshal(seen())
			t.Fatalf("%s did not come within %v; last seen: %s", what, patience, text)
		}
	}
}
