package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// bed is what the clients are run against: a worker and a server, which can be killed.
type bed struct {
	options
	set     *processes.Set
	dir     string
	clients clients
	stack   *stack.Stack
	memory  []string // flags that name the store

	mu            sync.Mutex // held while one of them is killed and started again
	worker, serve *processes.Process
	kills         int
	front         *front
	control       *http.Server
	asked         string // the URL of control
	end           func() // of the kills
}

// prepare installs the clients and starts PostgreSQL where that is wanted.
func (b *bed) prepare(ctx context.Context, log io.Writer) (stack.Config, error) {
	cfg := stack.Config{Dir: b.dir}
	var err error
	if b.clients, err = install(ctx, b.set, b.kit, log); err != nil || b.store != "postgres" {
		return cfg, err
	}
	if cfg.Postgres, _, err = (&testbed.Bed{Dir: b.dir, Processes: b.set}).StartPostgres(ctx); err != nil {
		return cfg, err
	}
	b.memory = []string{"--store", cfg.Postgres}
	return cfg, nil
}

// clear removes what PostgreSQL has left, which ran as another user.
func (b *bed) clear() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir + testbed.PostgresSuffix)
}

// start starts worker and server, and what kills them.
func (b *bed) start(ctx context.Context, s *stack.Stack) (err error) {
	b.stack = s
	if b.front, err = newFront(); err != nil {
		return err
	}
	if err := b.startWorker(ctx); err != nil {
		return err
	}
	if err := b.startServe(ctx); err != nil {
		return err
	}
	if err := b.listen(ctx); err != nil {
		return err
	}
	b.end = func() {}
	if b.kill > 0 {
		killing, end := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() { defer close(over); b.killAll(killing) }()
		b.end = func() { end(); <-over }
	}
	return nil
}

func (b *bed) stop() {
	b.end()
	_ = b.control.Close()
	b.front.close()
}

// listen lets scenarios kill a process by POST /kill/worker or /kill/serve, which answers once another one is ready.
func (b *bed) listen(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /kill/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := b.again(ctx, r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	b.control, b.asked = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, "http://"+l.Addr().String()
	go func() { _ = b.control.Serve(l) }() // until it is closed
	return nil
}

func (b *bed) begin(ctx context.Context, name, ready string, args ...string) (*processes.Process, error) {
	args = append([]string{name, "--address", b.stack.Address, "--task-queue", "interop", "--ready-file", ready}, args...)
	return b.set.Start(ctx, processes.Command{Name: name, Path: filepath.Join(b.dir, "agents"), Args: append(args, b.memory...),
		Env: b.stack.Env(), ReadyFile: ready})
}

func (b *bed) startWorker(ctx context.Context) (err error) {
	b.worker, err = b.begin(ctx, "worker", filepath.Join(b.dir, "worker.ready"))
	return err
}

func (b *bed) startServe(ctx context.Context) (err error) {
	b.serve, err = b.begin(ctx, "serve", filepath.Join(b.dir, "serve.ready"), "--listen", b.front.behind, "--webhooks-anywhere")
	return err
}

// again kills a process and starts another one like it.
func (b *bed) again(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch name {
	case "worker":
		b.kills++
		return errors.Join(b.worker.Kill(), b.startWorker(ctx))
	case "serve":
		b.kills++
		return errors.Join(b.serve.Kill(), b.startServe(ctx))
	}
	return fmt.Errorf("there is no process %q: want worker or serve", name)
}

// killAll kills worker and server by turns until ctx ends.
func (b *bed) killAll(ctx context.Context) {
	turns := time.NewTicker(b.kill)
	defer turns.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-turns.C:
		}
		// One that does not come up again ends the whole trial by the failure of whatever needs it.
		_ = b.again(context.WithoutCancel(ctx), []string{"worker", "serve"}[n%2])
	}
}
