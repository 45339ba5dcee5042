package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"superstep.dev/thread"

	"superstep.dev"
)

// runner is a worker that does what a test says.
type runner struct {
	cfg superstep.WorkerConfig
	run func(ctx context.Context, ready func()) error
}

func (r *runner) Run(ctx context.Context) error { return r.run(ctx, r.cfg.OnReady) }

// untilDone is a worker that drains at once.
func untilDone(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}

// workWith runs the worker command over a runner.
func workWith(t *testing.T, ctx context.Context, run func(context.Context, func()) error, args ...string) (
	r *runner, code int, stdout, stderr string) {
	a, out, errs := testApp(t, &script{}, "")
	a.graphs = []superstep.Runnable{drawn{"refund"}, drawn{"report"}}
	r = &runner{run: run}
	a.backend.newWorker = func(_ client.Client, cfg superstep.WorkerConfig) (taskRunner, error) {
		r.cfg = cfg
		return r, nil
	}
	code = a.run(ctx, append([]string{"worker"}, args...))
	return r, code, out.String(), errs.String()
}

func TestWorker(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ready := filepath.Join(t.TempDir(), "ready")
	r, code, stdout, stderr := workWith(t, ctx, func(ctx context.Context, isReady func()) error {
		require.NoFileExists(t, ready)
		isReady()
		pid, err := os.ReadFile(ready)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d\n", os.Getpid()), string(pid))
		stop()
		return untilDone(ctx, func() {})
	}, "--ready-file", ready, "--drain-timeout", "5s", "--task-queue", "slow")
	require.Equal(t, ExitOK, code, stderr)
	require.Equal(t, fmt.Sprintf("worker ready  graphs refund, report  task queue slow  pid %d\n"+
		"worker drained  pid %[1]d  in 0ms\n", os.Getpid()), stdout)
	require.Contains(t, stderr, "draining: no new tasks")
	require.Equal(t, "slow", r.cfg.TaskQueue)
	require.Equal(t, 5*time.Second, r.cfg.Options.WorkerStopTimeout)
	require.Len(t, r.cfg.Graphs, 2)
	entries, err := os.ReadDir(filepath.Dir(ready))
	require.NoError(t, err)
	require.Empty(t, entries, "neither the ready file nor a temporary one is left")
}

func TestWorkerSpeaksJSON(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, code, stdout, _ := workWith(t, ctx, func(ctx context.Context, ready func()) error {
		ready()
		stop()
		<-ctx.Done()
		return ctx.Err() // a worker may say that its context ended
	}, "-o", "json")
	require.Equal(t, ExitOK, code)
	require.Equal(t, fmt.Sprintf(`{"event":"ready","pid":%d,"graphs":["refund","report"],"task_queue":"superstep"}
{"event":"drained","pid":%[1]d}
`, os.Getpid()), stdout)
}

// TestWorkerHealthFollows asks the worker's health at each of its turns.
func TestWorkerHealthFollows(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	health := func(addr string) string {
		state, _, err := askHealth(t.Context(), addr)
		require.NoError(t, err)
		return state
	}
	a, stdout, _ := testApp(t, &script{}, "")
	log := &watchedWriter{word: "draining", seen: make(chan struct{})}
	a.stderr = log
	a.graphs = []superstep.Runnable{drawn{"refund"}}
	a.backend.newWorker = func(_ client.Client, cfg superstep.WorkerConfig) (taskRunner, error) {
		return &runner{cfg, func(_ context.Context, ready func()) error {
			ready()
			_, addr, found := strings.Cut(strings.TrimSpace(stdout.String()), "metrics ")
			require.True(t, found, stdout)
			require.Equal(t, "ready", health(addr))
			stop()
			<-log.seen
			require.Equal(t, "draining", health(addr))
			return nil
		}}, nil
	}
	require.Equal(t, ExitOK, a.run(ctx, []string{"worker", "--metrics-addr", "127.0.0.1:0"}))
}

// watchedWriter tells when a word was written for the first time.
type watchedWriter struct {
	word string
	once sync.Once
	seen chan struct{}
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.word) {
		w.once.Do(func() { close(w.seen) })
	}
	return len(p), nil
}

func TestWorkerDrainRunsOut(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	a, stdout, _ := testApp(t, &script{}, "")
	a.graphs = []superstep.Runnable{drawn{"refund"}}
	clock := a.Now()
	a.Now = func() time.Time {
		clock = clock.Add(30 * time.Second) // between the drain's begin and its end
		return clock
	}
	a.backend.newWorker = func(_ client.Client, cfg superstep.WorkerConfig) (taskRunner, error) {
		return &runner{cfg, func(ctx context.Context, ready func()) error {
			ready()
			stop()
			<-ctx.Done()
			return nil
		}}, nil
	}
	require.Equal(t, ExitOK, a.run(ctx, []string{"worker"}))
	require.Contains(t, stdout.String(), "tasks still ran after 30s; they run again on another worker")
}

func TestWorkerFails(t *testing.T) {
	_, code, _, stderr := workWith(t, t.Context(), func(context.Context, func()) error {
		return &thread.Error{Kind: thread.ErrNoServer, Message: "namespace gone"}
	}, "--log-level", "error")
	require.Equal(t, ExitUnreachable, code)
	require.Equal(t, "worker: namespace gone\n", stderr)

	_, code, _, stderr = workWith(t, t.Context(), func(context.Context, func()) error { return nil }, "--log-level", "error")
	require.Equal(t, ExitFailed, code)
	require.Equal(t, "the worker stopped by itself\n", stderr)

	_, code, stdout, stderr := workWith(t, t.Context(), untilDone, "--log-level", "error",
		"--ready-file", filepath.Join(t.TempDir(), "no", "such", "folder"))
	require.Equal(t, ExitNotBegun, code, "it is not a run that failed")
	require.Contains(t, stderr, "--ready-file: ")
	require.Empty(t, stdout, "it was never ready")

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, code, _, stderr = workWith(t, t.Context(), untilDone, "--log-level", "error", "--metrics-addr", taken.Addr().String())
	require.Equal(t, ExitNotBegun, code)
	require.Contains(t, stderr, "--metrics-addr: ")
	require.Contains(t, stderr, "address already in use")
}

func TestWorkerCannotBeSetUp(t *testing.T) {
	a, _, stderr := testApp(t, &script{}, "")
	a.graphs = []superstep.Runnable{drawn{"refund"}}
	a.backend.newWorker = func(client.Client, superstep.WorkerConfig) (taskRunner, error) {
		return nil, errors.New("two graphs named refund")
	}
	require.Equal(t, ExitFailed, a.run(t.Context(), []string{"worker"}))
	require.Equal(t, "worker: two graphs named refund\n", stderr.String())
}

func TestReadyFileOfAnother(t *testing.T) {
	f := readyFile(filepath.Join(t.TempDir(), "ready"))
	require.NoError(t, f.write(1))
	require.NoError(t, f.write(2), "a successor takes the file over")
	f.remove(1)
	require.FileExists(t, string(f))
	f.remove(2)
	require.NoFileExists(t, string(f))
	f.remove(2)
	require.NoError(t, readyFile("").write(1))
	readyFile("").remove(1)
}

// TestWorkerEncodesErrorsWithPayloads: a program's data converter comes with the converter of errors that goes with it.
func TestWorkerEncodesErrorsWithPayloads(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	a, _, _ := testApp(t, &script{}, "")
	a.graphs, a.payload = []superstep.Runnable{drawn{"refund"}}, converter.GetDefaultDataConverter()
	var dialed client.Options
	dial := a.backend.dial
	a.backend.dial = func(ctx context.Context, opts client.Options) (client.Client, error) {
		dialed = opts
		return dial(ctx, opts)
	}
	r := &runner{run: func(ctx context.Context, ready func()) error {
		stop()
		return untilDone(ctx, ready)
	}}
	a.backend.newWorker = func(_ client.Client, cfg superstep.WorkerConfig) (taskRunner, error) {
		r.cfg = cfg
		return r, nil
	}
	require.Equal(t, ExitOK, a.run(ctx, []string{"worker"}))
	require.Equal(t, a.payload, r.cfg.DataConverter)
	require.NotNil(t, r.cfg.FailureConverter)
	require.Equal(t, dialed.FailureConverter, r.cfg.FailureConverter)
	require.Equal(t, "Encoded failure", r.cfg.FailureConverter.ErrorToFailure(errors.New("secret")).GetMessage())
}
