// Package wire holds what programs see that have Temporal's client and nothing of this module: docs/wire.md is their contract.
package wire_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

// patience bounds what a test waits for.
const patience = 2 * time.Minute

// rig is a server with a task queue of the test's own: Temporal's client, and ours beside it.
type rig struct {
	t        *testing.T
	temporal client.Client
	ours     *superstep.Client
	address  string
	queue    string
	told     told
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, address: testserver.Address(t), queue: testserver.Queue(t)}
	var err error
	r.temporal, err = client.Dial(client.Options{HostPort: r.address})
	require.NoError(t, err)
	t.Cleanup(r.temporal.Close)
	r.ours, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue})
	require.NoError(t, err)
	return r
}

// work serves graphs and leaders until the test ends, with a notifier and a gate that nobody has a key for.
func (r *rig) work(cfg superstep.WorkerConfig) {
	r.t.Helper()
	cfg.TaskQueue, cfg.Notify, cfg.Gate = r.queue, &r.told, &approval.Gate{}
	ready := make(chan struct{})
	cfg.OnReady = func() { close(ready) }
	w, err := superstep.NewWorker(r.temporal, cfg)
	require.NoError(r.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	r.t.Cleanup(func() {
		stop()
		require.NoError(r.t, <-ended)
	})
	select {
	case <-ready:
	case err := <-ended:
		r.t.Fatal(err)
	}
}

// start starts a run as a program does that knows Temporal only.
func (r *rig) start(thread string, input ...any) client.WorkflowRun {
	r.t.Helper()
	run, err := r.temporal.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{ID: thread, TaskQueue: r.queue}, "superstep.graph", input...)
	require.NoError(r.t, err)
	return run
}

// told notes what people are told.
type told struct {
	mu    sync.Mutex
	kinds map[string][]approval.Kind
}

// Targets implements approval.Notifier.
func (*told) Targets() []string { return []string{"people"} }

// Notify implements approval.Notifier.
func (n *told) Notify(_ context.Context, _ string, notice approval.Notice) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kinds == nil {
		n.kinds = map[string][]approval.Kind{}
	}
	n.kinds[notice.Thread] = append(n.kinds[notice.Thread], notice.Kind)
	return nil
}

func (n *told) of(thread string) []approval.Kind {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kinds[thread]
}
