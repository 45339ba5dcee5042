package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/testserver"
)

// deployment is what the Temporal engine needs beside the cases: a server, which is its own unless an address was
// given, and for the graphs of each call of serve a task queue with a worker in this process.
type deployment struct {
	server   *testserver.Server // nil when it is somebody else's
	temporal client.Client

	mu      sync.Mutex
	clients map[string]*superstep.Client // by the graphs' names
}

// deploy connects to the server at an address, or starts one.
func deploy(address string, out io.Writer) (*deployment, error) {
	d := &deployment{clients: map[string]*superstep.Client{}}
	if address == "" {
		address = os.Getenv(testserver.EnvAddress)
	}
	if address == "" {
		binary, err := testserver.Binary(out)
		if err != nil {
			return nil, fmt.Errorf("a Temporal server: %w (-address uses one that is there)", err)
		}
		if d.server, err = testserver.Launch(binary, testserver.Options{}); err != nil {
			return nil, err
		}
		address = d.server.Address()
	}
	silent := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	var err error
	if d.temporal, err = client.Dial(superstep.Watched(client.Options{HostPort: address, Logger: silent})); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the Temporal server at %s: %w", address, err), d.close())
	}
	return d, nil
}

func (d *deployment) close() error {
	if d.temporal != nil {
		d.temporal.Close()
	}
	if d.server == nil {
		return nil
	}
	return d.server.Close()
}

// runnable is a graph as workers take it.
type runnable struct{ graph *graphadapter.Graph }

func (r runnable) Name() string                 { return r.graph.Spec.Name }
func (r runnable) Adapter() *graphadapter.Graph { return r.graph }

// slots is how many workflow tasks and how many activities the worker runs at once.
const slots = 200

// lostAfter is longer than a busy machine stands still: how often a node ran is compared, and no worker is lost here. A task that is to
// end hears so within a third of it.
const lostAfter = 10 * time.Second

// work starts a worker for the graphs, and returns once the server knows it. The graphs' names are new to the
// deployment.
func (d *deployment) work(ctx context.Context, graphs []*graphadapter.Graph) (stop func() error, err error) {
	queue := "conformance-" + strings.ToLower(rand.Text()[:8])
	c, err := superstep.NewClient(d.temporal, superstep.ClientConfig{TaskQueue: queue})
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	cfg := superstep.WorkerConfig{TaskQueue: queue, OnReady: func() { close(ready) }, LostAfter: lostAfter, Options: worker.Options{
		MaxConcurrentActivityExecutionSize: slots, MaxConcurrentWorkflowTaskExecutionSize: slots,
	}}
	d.mu.Lock()
	for _, g := range graphs {
		cfg.Graphs, d.clients[g.Spec.Name] = append(cfg.Graphs, runnable{g}), c
	}
	d.mu.Unlock()
	w, err := superstep.NewWorker(d.temporal, cfg)
	if err != nil {
		return nil, err
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	select {
	case <-ready:
		return func() error { cancel(); return <-ended }, nil
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the worker ended: %w", err)
	case <-ctx.Done():
		cancel()
		return nil, errors.Join(context.Cause(ctx), <-ended)
	}
}

// clientOf is the client that starts a graph.
func (d *deployment) clientOf(graph string) (*superstep.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.clients[graph]
	if !ok {
		return nil, fmt.Errorf("no worker serves the graph %s", graph)
	}
	return c, nil
}
