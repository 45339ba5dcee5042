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
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/internal/heaproom"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
	"superstep.dev/thread/storage"
)

// serveCommand makes this program a worker: peers serve QUEUE ADDRESS READYFILE [DIRECTORY].
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
	if len(args) != 3 && len(args) != 4 {
		fmt.Fprintf(os.Stderr, "usage: peers %s <queue> <host:port> <ready file> [<directory of large values>]\n", serveCommand)
		return exitBroken
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	heaproom.Give() // as the worker command does
	if err := serve(ctx, args[0], args[1], args[2], args[3:]...); err != nil {
		fmt.Fprintln(os.Stderr, "peers worker:", err)
		return exitBroken
	}
	return 0
}

func serve(ctx context.Context, queue, address, ready string, dir ...string) error {
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
	values, err := valuesIn(dir...)
	if err != nil {
		return err
	}
	w, err := newWorker(c, queue, superstep.WorkerConfig{Storage: values, OnReady: polls})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// valuesIn is the storage of large values in a directory; nil without one.
func valuesIn(dir ...string) (*storage.Storage, error) {
	if len(dir) == 0 || dir[0] == "" {
		return nil, nil
	}
	return storage.Files(dir[0], storage.Options{})
}

// newWorker makes a worker of the graphs; cfg says where values are kept and who hears when it polls.
func newWorker(c client.Client, queue string, cfg superstep.WorkerConfig) (*superstep.Worker, error) {
	cfg.TaskQueue, cfg.Options = queue, worker.Options{WorkerStopTimeout: time.Second}
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
