package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

const (
	// patience bounds every wait: it only ends tests that hang.
	patience = 8 * time.Minute
	poll     = 10 * time.Millisecond
	// lostAfter is longer than a busy machine stands still: what is killed runs again, and nothing else does.
	lostAfter = 10 * time.Second
)

// rig is one test's own part of the world: a task queue, its workers, a payments service, a directory.
type rig struct {
	t        *testing.T
	address  string
	queue    string
	dir      string
	set      *processes.Set
	names    []string // of the processes
	temporal client.Client
	client   *superstep.Client
	// lostAfter is after how much silence workers count as lost; 0 for the tests' usual time.
	lostAfter time.Duration
	// flags and env are given to the workers of these tests' graphs, beside those that lead to the server.
	flags, env []string
	// money is the payments service, nil until it is started; moneyURL is where it listens.
	money    *payments.Client
	moneyURL string
	service  *processes.Process
}

// newRig returns a rig on the server that all tests share, and lets the test run beside others.
func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	return newRigAt(t, testserver.Address(t))
}

func newRigAt(t *testing.T, address string) *rig {
	t.Helper()
	r := &rig{t: t, address: address, queue: testserver.Queue(t), dir: t.TempDir()}
	set, _, err := processes.New(context.Background(), filepath.Join(r.dir, "logs"))
	require.NoError(t, err)
	r.set = set
	t.Cleanup(r.close)
	r.temporal, err = client.DialContext(t.Context(), client.Options{HostPort: address, Logger: silent{}})
	require.NoError(t, err)
	t.Cleanup(r.temporal.Close)
	r.client, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue})
	require.NoError(t, err)
	return r
}

func (r *rig) close() {
	if err := r.set.Stop(); err != nil {
		r.t.Errorf("stop the processes: %v", err)
	}
	if !r.t.Failed() {
		return
	}
	for _, name := range r.names {
		r.t.Logf("the end of what %s wrote:\n%s", name, r.set.Tail(name, 30))
	}
}

func (r *rig) binary(pkg string) string {
	r.t.Helper()
	paths, err := binaries()
	require.NoError(r.t, err)
	return paths[pkg]
}

// environment is this process's own without what would tell a child of other servers, and with more.
func environment(more ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "TEMPORAL_") || strings.HasPrefix(line, "SUPERSTEP_") ||
			strings.HasPrefix(line, "PAYMENTS_URL=") || strings.HasPrefix(line, "REFUND_LIMIT=")
	})
	return append(own, more...)
}

// start starts a process and returns once it is ready.
func (r *rig) start(c processes.Command) *processes.Process {
	r.t.Helper()
	p, err := r.set.Start(r.t.Context(), r.telling(c))
	require.NoError(r.t, err)
	return p
}

// telling is the command of a process that tells by a file when it is ready.
func (r *rig) telling(c processes.Command) processes.Command {
	c.ReadyFile = filepath.Join(r.dir, c.Name+".ready")
	c.Args = append(c.Args, "--ready-file", c.ReadyFile)
	c.ReadyWithin, c.StopWithin = patience, patience
	if !slices.Contains(r.names, c.Name) {
		r.names = append(r.names, c.Name)
	}
	return c
}

// readyPID is the process id that a worker wrote when it got ready.
func (r *rig) readyPID(name string) int {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name+".ready"))
	require.NoError(r.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(r.t, err)
	return pid
}

// payments starts the payments service on a database of the test's own.
func (r *rig) payments() {
	r.t.Helper()
	r.startPayments(testserver.FreeAddress())
}

func (r *rig) startPayments(address string) {
	r.t.Helper()
	r.service = r.start(processes.Command{Name: "payments", Path: r.binary(paymentsCommand),
		Args: []string{"--addr", address, "--db", filepath.Join(r.dir, "payments.db")}})
	r.moneyURL = "http://" + r.service.Said()[0]
	money, err := payments.NewClient(r.moneyURL)
	require.NoError(r.t, err)
	r.money = money
}

// refundWorker starts a worker of the refund example, and returns once the server knows it.
func (r *rig) refundWorker(name string) *processes.Process {
	r.t.Helper()
	p := r.start(processes.Command{Name: name, Path: r.binary(workerCommand), Args: r.working(),
		Env: environment(append(r.env, "PAYMENTS_URL="+r.moneyURL)...)})
	r.awaitPoller()
	return p
}

// graphsWorker starts a worker of the graphs of these tests.
func (r *rig) graphsWorker(name string) *processes.Process {
	r.t.Helper()
	p := r.start(r.program(name))
	r.awaitPoller()
	return p
}

// program is this test binary as a program with all commands, told to work.
func (r *rig) program(name string) processes.Command {
	return processes.Command{Name: name, Path: os.Args[0], Args: slices.Concat([]string{"worker"}, r.working(), r.flags),
		Env: environment(append(r.env, asProgram+"=1")...)}
}

// connection are the flags that lead to the test's server and task queue.
func (r *rig) connection() []string {
	return []string{"--address", r.address, "--task-queue", r.queue}
}

// working are the flags of all workers.
func (r *rig) working() []string {
	return append(r.connection(), "--lost-after", cmp.Or(r.lostAfter, lostAfter).String())
}

// awaitPoller waits until the server has heard of a worker: until then clients take it that there is none.
func (r *rig) awaitPoller() {
	r.t.Helper()
	r.until("the server knows a worker", func() bool {
		known, err := r.temporal.DescribeTaskQueue(r.t.Context(), r.queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil && len(known.GetPollers()) > 0
	})
}

// until waits for a condition. It asks on the test's own goroutine: a command that fails within it ends the test there.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	late := time.After(patience)
	again := time.NewTicker(poll)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-late:
			require.FailNow(r.t, "it never came so far", what)
		}
	}
}

// kill ends a process as a crash does.
func (r *rig) kill(p *processes.Process) {
	r.t.Helper()
	require.NoError(r.t, p.Kill())
}

// begin starts a run on a new thread and returns the thread.
func (r *rig) begin(graph string, input any) (thread string) {
	r.t.Helper()
	thread = testserver.Queue(r.t)
	r.again(graph, thread, input)
	return thread
}

// again starts a run on a thread, in its graph's mode unless one is given.
func (r *rig) again(graph, threadID string, input any, mode ...superstep.Durability) {
	r.t.Helper()
	req := thread.StartRequest{Graph: graph, Thread: threadID, Input: encode(r.t, input)}
	if len(mode) > 0 {
		req.Durability = mode[0]
	}
	_, err := r.client.Start(r.t.Context(), req)
	require.NoError(r.t, err)
}

// wait waits until the thread's run stands still, and wants it to stand at that status.
func (r *rig) wait(thread string, want thread.Status) thread.View {
	r.t.Helper()
	view := r.settled(thread)
	require.Equal(r.t, want, view.Status, "%+v", view)
	return view
}

// settled waits until the thread's run stands still.
func (r *rig) settled(threadID string) thread.View {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var view thread.View
	var err error
	for view.Status == "" || view.Status == thread.StatusRunning {
		view, err = r.client.Wait(ctx, threadID)
		require.NoError(r.t, err)
	}
	return view
}

// asked waits for a run that asks one thing, and returns it.
func (r *rig) asked(threadID string) thread.Question {
	r.t.Helper()
	view := r.wait(threadID, thread.StatusWaiting)
	require.Len(r.t, view.Questions, 1)
	return view.Questions[0]
}

// answer answers a question by update.
func (r *rig) answer(threadID, question string, value any) (thread.ResumeReply, error) {
	r.t.Helper()
	return r.client.Resume(r.t.Context(), thread.ResumeRequest{Thread: threadID, Question: question, Value: encode(r.t, value), By: "ann"})
}

// put makes a file that steers a graph; remove takes it away.
func (r *rig) put(file string) {
	r.t.Helper()
	r.putText(file, "")
}

func (r *rig) putText(file, text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644))
}

func (r *rig) remove(file string) {
	r.t.Helper()
	require.NoError(r.t, os.Remove(filepath.Join(r.dir, file)))
}

// ran counts how often a node was run.
func (r *rig) ran(node string) int {
	text, err := os.ReadFile(filepath.Join(r.dir, "ran"))
	if err != nil {
		return 0
	}
	times := 0
	for line := range strings.Lines(string(text)) {
		if line == node+"\n" {
			times++
		}
	}
	return times
}

// steered is the input of a graph that the rig's directory steers.
func (r *rig) steered() map[string]string { return map[string]string{"dir": r.dir} }

// value decodes one channel of a thread's state.
func value[T any](r *rig, threadID, channel string) T {
	r.t.Helper()
	state, err := r.client.State(r.t.Context(), thread.StateRequest{Thread: threadID})
	r.until("a worker tells the state of "+threadID, func() bool { // one that is busy with a large state may take longer than a reader waits
		if late := errors.Is(err, thread.ErrNoWorker) || errors.Is(err, thread.ErrBusy); !late {
			return true
		}
		state, err = r.client.State(r.t.Context(), thread.StateRequest{Thread: threadID})
		return err == nil
	})
	require.NoError(r.t, err)
	var v T
	if raw, ok := state.Values[channel]; ok {
		require.NoError(r.t, json.Unmarshal(raw, &v))
	}
	return v
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

// refundedOnce wants exactly one refund of an order, of which the service was asked exactly once.
func (r *rig) refundedOnce(order string, amount int64) payments.KeyTraffic {
	r.t.Helper()
	refunds, err := r.money.Refunds(r.t.Context(), order)
	require.NoError(r.t, err)
	require.Len(r.t, refunds, 1, "refunds of order %s", order)
	require.Equal(r.t, amount, refunds[0].Amount)
	stats, err := r.money.Stats(r.t.Context())
	require.NoError(r.t, err)
	return stats.Refunds.ByKey[refunds[0].Key]
}

// order puts an order and returns its id.
func (r *rig) order(n int, amount int64) string {
	r.t.Helper()
	id := fmt.Sprintf("e2e-%d", n)
	_, err := r.money.PutOrder(r.t.Context(), payments.Order{ID: id, Amount: amount, Customer: "Ada Berg"})
	require.NoError(r.t, err)
	return id
}

// silent drops the log lines of the Temporal client.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
