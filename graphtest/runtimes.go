package graphtest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
)

// Runtimes runs one test body on every runtime, each in a subtest of its own: "memory", and "temporal" with a worker
// that serves the graphs. What a body promises on one runtime it has to keep on the other.
//
// Take thread ids from [ThreadID]: threads on a server outlive the test. A body may call t.Parallel. Approvals are answered
// with a [Token].
//
// The server is the one that SUPERSTEP_TEST_ADDRESS or TEMPORAL_ADDRESS names, the latter with Temporal's other
// environment variables for namespace, TLS and so on. Without any the Temporal half is skipped, except inside
// Superstep's own repository, which starts one. To get one:
//
//	go run superstep.dev/devserver@latest &
//	TEMPORAL_ADDRESS=127.0.0.1:7233 go test ./...
func Runtimes(t *testing.T, body func(t *testing.T, rt superstep.Runtime), graphs ...superstep.Runnable) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { body(t, superstep.NewMemory()) })
	t.Run("temporal", func(t *testing.T) { body(t, Temporal(t, graphs...)) })
}

// Temporal returns a client of a worker that serves the graphs on a task queue of its own until the test ends. It
// skips the test when there is no server; see [Runtimes].
func Temporal(t testing.TB, graphs ...superstep.Runnable) *superstep.Client {
	t.Helper()
	return serving(t, superstep.WorkerConfig{Graphs: graphs})
}

// Leaders is [Temporal] with a worker that serves leaders and the graphs of their experts.
func Leaders(t testing.TB, leaders ...superstep.Leader) *superstep.Client {
	t.Helper()
	return serving(t, superstep.WorkerConfig{Leaders: leaders})
}

// serving is a client of a worker with that configuration.
func serving(t testing.TB, cfg superstep.WorkerConfig) *superstep.Client {
	t.Helper()
	opts := connection(t)
	c, err := client.DialContext(t.Context(), superstep.Watched(opts))
	if err != nil {
		t.Fatalf("graphtest: connect to the Temporal server at %s: %v", opts.HostPort, err)
	}
	t.Cleanup(c.Close)
	cfg.TaskQueue, cfg.LostAfter = ThreadID(t), patient
	serve(t, c, cfg)
	rt, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: cfg.TaskQueue, Namespace: opts.Namespace})
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	return rt
}

// patient is after how much silence the worker is taken for lost. It lives as long as its test: silence means that the machine is busy,
// and a node that ran again for it would run more often than in memory.
const patient = 10 * time.Second

// noServer is what a skipped test says.
const noServer = "no Temporal server for this test: start one (go run superstep.dev/devserver@latest) and set " +
	"TEMPORAL_ADDRESS=127.0.0.1:7233"

// connection says where the server is.
func connection(t testing.TB) client.Options {
	t.Helper()
	if os.Getenv(testserver.EnvAddress) == "" && os.Getenv("TEMPORAL_ADDRESS") != "" {
		opts, err := envconfig.LoadDefaultClientOptions()
		if err != nil {
			t.Fatalf("graphtest: the TEMPORAL_ environment variables: %v", err)
		}
		opts.Logger = silent{}
		return opts
	}
	address, err := testserver.Shared()
	if errors.Is(err, testserver.ErrNoSource) {
		t.Skip(noServer)
	}
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	return client.Options{HostPort: address, Namespace: client.DefaultNamespace, Logger: silent{}}
}

// drainTimeout is how long a worker waits for nodes that still run when their test is over.
const drainTimeout = 5 * time.Second

// serve runs a worker until the test ends, and returns once it takes tasks.
func serve(t testing.TB, c client.Client, cfg superstep.WorkerConfig) {
	t.Helper()
	ready := make(chan struct{})
	cfg.Options = worker.Options{WorkerStopTimeout: drainTimeout}
	cfg.Gate, cfg.OnReady = &approval.Gate{Keys: unsigned{}}, func() { close(ready) }
	w, err := superstep.NewWorker(c, cfg)
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("graphtest: the worker: %v", err)
		}
	})
	select {
	case <-ready:
		awaitPoller(t, c, cfg.TaskQueue)
	case err := <-ended:
		ended <- err // for the cleanup
		t.Fatalf("graphtest: the worker did not start: %v", err)
	}
}

// awaitPoller waits until the server has heard of the worker: until then it counts as absent.
func awaitPoller(t testing.TB, c client.Client, queue string) {
	t.Helper()
	for {
		known, err := c.DescribeTaskQueue(t.Context(), queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			t.Fatalf("graphtest: wait for the worker: %v", err)
		}
		if len(known.GetPollers()) > 0 {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("graphtest: wait for the worker: %v", context.Cause(t.Context()))
		}
	}
}

// ThreadID returns an id that begins with the test's name and that no other test has, nor another run of this one.
func ThreadID(t testing.TB) string { return testserver.Queue(t) }

// silent drops the log lines of the Temporal client: a failed test tells what matters.
type silent struct{}

// Debug implements log.Logger.
func (silent) Debug(string, ...any) {}

// Info implements log.Logger.
func (silent) Info(string, ...any) {}

// Warn implements log.Logger.
func (silent) Warn(string, ...any) {}

// Error implements log.Logger.
func (silent) Error(string, ...any) {}
