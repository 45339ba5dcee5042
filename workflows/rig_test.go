package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/nexttask"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// fewer is few with -short, as make test runs this package, and else many, as make verify does.
func fewer(few, many int) int {
	if testing.Short() {
		return few
	}
	return many
}

// patience bounds every wait of a test for something that takes milliseconds: a worker that was stopped is missed for
// seconds, and where others want the processors all takes many times as long.
const patience = 2 * time.Minute

// steady is a silence that a busy machine seldom reaches: for tests that count how often a node ran, and lose no worker. A task that is
// to end hears so within a third of it, so it is no longer.
const steady = 10 * time.Second

// silent keeps the SDK's log lines out of the tests' output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

var _ log.Logger = silent{}

// rig is a client of the test server and a task queue of the test's own.
type rig struct {
	t      *testing.T
	ctx    context.Context
	client client.Client
	queue  string
	// gate and notifier are those of the workers that are started next.
	gate     *approval.Gate
	notifier approval.Notifier
	late     func() time.Duration // theirs too
	live     activities.Live      // nil: nobody listens
	// follows says that the workers' connection has workflow tasks follow each other, as that of superstep.Watched.
	follows bool
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c, err := client.Dial(nexttask.Options(client.Options{HostPort: testserver.Address(t), Identity: "test", Logger: silent{}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	t.Cleanup(cancel)
	return &rig{t: t, ctx: ctx, client: c, queue: testserver.Queue(t)}
}

// work starts a worker that serves graphs. It ends with the test, or when stop is called.
func (r *rig) work(graphs ...*graphadapter.Graph) (stop func()) {
	r.t.Helper()
	w := worker.New(r.client, r.queue, worker.Options{
		Identity: "test", StickyScheduleToStartTimeout: time.Second, WorkerStopTimeout: patience, DeadlockDetectionTimeout: raced,
	})
	inputs := activities.NewInputs(0, r.replaying(graphs...))
	workflows.NewGraphs(graphs, workflows.Config{Values: inputs, LostAfter: steady, Late: r.late, NextTask: nexttask.Want}).Register(w)
	follows := r.follows
	activities.NewNodes(r.client, graphs).WithInputs(inputs).WithNextTask(func() bool { return follows }).WithGate(r.gate).WithNotifier(r.notifier).Publishing(r.live).Register(w)
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	running := true
	stop = func() {
		if running {
			running = false
			w.Stop()
		}
	}
	r.t.Cleanup(stop)
	return stop
}

// start starts a run of a thread.
func (r *rig) start(thread string, in protocol.GraphInput) client.WorkflowRun {
	r.t.Helper()
	run, err := r.client.ExecuteWorkflow(r.ctx, client.StartWorkflowOptions{
		ID: thread, TaskQueue: r.queue, WorkflowTaskTimeout: 3 * time.Second,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{protocol.MemoGraph: in.Graph}, // as our clients do
	}, protocol.GraphWorkflow, in)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// finished waits for a run's result.
func (r *rig) finished(run client.WorkflowRun) *protocol.GraphResult {
	r.t.Helper()
	var result protocol.GraphResult
	if err := run.Get(r.ctx, &result); err != nil {
		r.t.Fatalf("thread %s: %v", run.GetID(), err)
	}
	return &result
}

// state queries a thread's newest run.
func (r *rig) state(thread string) (protocol.State, error) {
	ctx, cancel := context.WithTimeout(r.ctx, 30*time.Second)
	defer cancel()
	var s protocol.State
	v, err := r.client.QueryWorkflow(ctx, thread, "", protocol.QueryState)
	if err == nil {
		err = v.Get(&s)
	}
	return s, err
}

// until waits until a thread's state is as wanted, and returns it.
func (r *rig) until(thread, what string, wanted func(protocol.State) bool) protocol.State {
	r.t.Helper()
	var last protocol.State
	var lastErr error
	await(r.t, what, func() bool {
		last, lastErr = r.state(thread)
		return lastErr == nil && wanted(last)
	}, func() any { return map[string]any{"state": last, "error": lastErr} })
	return last
}

// asks waits until a thread waits with that many open questions.
func (r *rig) asks(thread string, n int) protocol.State {
	r.t.Helper()
	return r.until(thread, "the questions", func(s protocol.State) bool {
		return s.Status == protocol.StatusWaiting && len(s.Questions) == n
	})
}

// await waits for a condition; seen is shown when it does not come.
func await(t *testing.T, what string, condition func() bool, seen func() any) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
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

// update answers by update and returns the reply.
func (r *rig) update(thread string, req protocol.ResumeRequest) (protocol.ResumeReply, error) {
	var reply protocol.ResumeReply
	err := r.call(thread, protocol.UpdateResume, req.ID, req, &reply)
	return reply, err
}

// signal answers by signal.
func (r *rig) signal(thread string, req protocol.ResumeRequest) {
	r.t.Helper()
	if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalResume, req); err != nil {
		r.t.Fatal(err)
	}
}

// lines queries a thread's history.
func (r *rig) lines(thread string) []protocol.Line {
	r.t.Helper()
	var out []protocol.Line
	v, err := r.client.QueryWorkflow(r.ctx, thread, "", protocol.QueryHistory)
	if err == nil {
		err = v.Get(&out)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range out {
		if out[i].Run == "" {
			r.t.Fatalf("line %d names no run: %+v", i, out[i])
		}
		if age := time.Since(time.UnixMilli(out[i].At)); age < -time.Hour || age > time.Hour {
			r.t.Fatalf("line %d was made %v ago: %+v", i, age, out[i])
		}
		out[i].Run, out[i].At = "", 0 // differ from run to run
	}
	return out
}

// questionOf returns the open question of a node.
func questionOf(t *testing.T, s protocol.State, node string) pregel.OpenQuestion {
	t.Helper()
	for _, q := range s.Questions {
		if q.Node == node {
			return q
		}
	}
	t.Fatalf("node %s has no open question: %+v", node, s.Questions)
	return pregel.OpenQuestion{}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// errorKind is the type of the application error within err, "" for any other error.
func errorKind(err error) string {
	var typed interface{ Type() string }
	if errors.As(err, &typed) {
		return typed.Type()
	}
	return ""
}

func TestMain(m *testing.M) {
	if os.Getenv(uncachedEnv) != "" {
		worker.SetStickyWorkflowCacheSize(0)
	}
	os.Exit(m.Run())
}
