package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/internal/heaproom"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
)

// serveCommand makes this program a worker: peers serve KIND ADDRESS READYFILE.
const serveCommand = "serve"

// The task queues. One that begins with floorQueue is served by a worker of the hand-written workflows.
const (
	superstepQueue = "peers-superstep"
	floorQueue     = "peers-floor"
	// hereQueue is served by the client's own process.
	hereQueue = "peers-here"
)

// serveMain serves until it is told to end, and returns the exit code.
func serveMain(args []string) int {
	if len(args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: peers %s <queue> <host:port> <ready file>\n", serveCommand)
		return exitBroken
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	heaproom.Give() // as the worker command does
	if err := serve(ctx, args[0], args[1], args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "peers worker:", err)
		return exitBroken
	}
	return 0
}

func serve(ctx context.Context, queue, address, ready string) error {
	counted := newCalls()
	c, err := testbed.Dial(ctx, address, counted.option())
	if err != nil {
		return err
	}
	defer c.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() { _ = http.Serve(listener, counted) }() // until the listener is closed
	polls := func() {
		_ = os.WriteFile(ready+".new", []byte("http://"+listener.Addr().String()), 0o600) // without it the parent gives up, and says so
		_ = os.Rename(ready+".new", ready)
	}
	if strings.HasPrefix(queue, floorQueue) {
		return serveFloor(ctx, c, queue, polls)
	}
	w, err := newWorker(c, queue, polls)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// newWorker is a worker of all graphs.
func newWorker(c client.Client, queue string, polls func()) (*superstep.Worker, error) {
	cfg := superstep.WorkerConfig{TaskQueue: queue, OnReady: polls, Options: worker.Options{WorkerStopTimeout: time.Second}}
	for _, g := range graphs() {
		cfg.Graphs = append(cfg.Graphs, g)
	}
	return superstep.NewWorker(c, cfg)
}

// serveFloor serves the hand-written workflows, with the options of Superstep's workers.
func serveFloor(ctx context.Context, c client.Client, queue string, polls func()) error {
	w := worker.New(c, queue, worker.Options{
		StickyScheduleToStartTimeout: time.Second, MaxConcurrentWorkflowTaskPollers: 5, MaxConcurrentActivityTaskPollers: 5,
		WorkerStopTimeout: time.Second, DisableRegistrationAliasing: true,
	})
	registerFloor(w, c)
	if err := w.Start(); err != nil {
		return err
	}
	polls()
	<-ctx.Done()
	w.Stop()
	return nil
}

// workerProcess is a worker in a process of its own.
type workerProcess struct {
	*processes.Process
	calls string // the URL of its counts
}

// startWorker starts this very program as a worker, and returns when it polls. Output gets what it writes; nil is nobody.
func startWorker(ctx context.Context, bed *testbed.Bed, queue, address string, output io.Writer) (*workerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(bed.Dir, "worker")
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(dir, "ready")
	p, err := bed.Processes.Start(ctx, processes.Command{Name: queue, Path: self, Args: []string{serveCommand, queue, address, ready},
		ReadyFile: ready, Output: output})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bed.Processes.Tail(queue, 20))
	}
	return &workerProcess{p, p.Said()[0]}, nil
}

// call sends a request to another process of this bench, and decodes the reply.
func call(ctx context.Context, url string, in, out any) error {
	method, body := http.MethodGet, io.Reader(nil)
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		method, body = http.MethodPost, bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // as much as there is
		return fmt.Errorf("%s: %s: %s", url, resp.Status, bytes.TrimSpace(text))
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
