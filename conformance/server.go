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

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/testserver"
)

// deployment is what the Temporal engine needs beside the cases: a server, which is its own unless an address was
// given, a worker in this process, and a client.
type deployment struct {
	server   *testserver.Server // nil when it is somebody else's
	temporal client.Client
	client   *superstep.Client
	queue    string
	stop     []func() error // ends the workers
}

// deploy connects to the server at an address, or starts one.
func deploy(address string, out io.Writer) (*deployment, error) {
	d := &deployment{queue: "conformance-" + strings.ToLower(rand.Text()[:8])}
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
	if d.temporal, err = client.Dial(client.Options{HostPort: address, Logger: silent}); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the Temporal server at %s: %w", address, err), d.close())
	}
	if d.client, err = superstep.NewClient(d.temporal, superstep.ClientConfig{TaskQueue: d.queue}); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// runnable is a graph as workers take it.
type runnable struct{ graph *graphadapter.Graph }

func (r runnable) Name() string                 { return r.graph.Spec.Name }
func (r runnable) Adapter() *graphadapter.Graph { return r.graph }

// slots is how many workflow tasks and how many activities the worker runs at once.
const slots = 200

// work starts a worker for the graphs, and returns once the server knows it.
func (d *deployment) work(ctx context.Context, graphs []*graphadapter.Graph) error {
	cfg := superstep.WorkerConfig{TaskQueue: d.queue, Options: worker.Options{
		MaxConcurrentActivityExecutionSize: slots, MaxConcurrentWorkflowTaskExecutionSize: slots,
	}}
	for _, g := range graphs {
		cfg.Graphs = append(cfg.Graphs, runnable{g})
	}
	ready := make(chan struct{})
	cfg.OnReady = func() { close(ready) }
	w, err := superstep.NewWorker(d.temporal, cfg)
	if err != nil {
		return err
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return fmt.Errorf("the worker ended: %w", err)
	case <-ctx.Done():
		cancel()
		return errors.Join(context.Cause(ctx), <-ended)
	}
	d.stop = append(d.stop, func() error { cancel(); return <-ended })
	return nil
}

func (d *deployment) close() error {
	var errs []error
	for _, stop := range d.stop {
		errs = append(errs, stop())
	}
	if d.temporal != nil {
		d.temporal.Close()
	}
	if d.server != nil {
		errs = append(errs, d.server.Close())
	}
	return errors.Join(errs...)
}
