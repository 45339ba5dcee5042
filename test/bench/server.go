package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// How long the devserver may take. A start is a matter of one to three seconds on an idle machine.
const (
	serverStart = 90 * time.Second
	serverStop  = 20 * time.Second
)

// server is a devserver on a database file of its own.
type server struct {
	address string
	process *processes.Process
}

// startServer starts a devserver; stock leaves Temporal's settings as they are.
func (b *bench) startServer(ctx context.Context, stock bool) (*server, error) {
	args := []string{"--db", "bench.db"}
	if stock {
		args = append(args, "--stock")
	}
	return b.serve(ctx, args...)
}

// serve starts a devserver with the given flags besides the usual ones, in a directory of its own.
func (b *bench) serve(ctx context.Context, flags ...string) (*server, error) {
	binary, err := b.devserverBinary(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "server")
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(dir, "ready")
	args := append([]string{"--port", "0", "--headless", "--ready-file", ready, "--log-level", "error"}, flags...)
	p, err := b.processes.Start(ctx, processes.Command{
		Name: "devserver", Path: binary, Args: args, Dir: dir, ReadyFile: ready, ReadyWithin: serverStart, StopWithin: serverStop,
	})
	if err != nil {
		return nil, err
	}
	return &server{address: p.Said()[0], process: p}, nil
}

// devserverBinary returns the devserver to use, which it builds when none was given.
func (b *bench) devserverBinary(ctx context.Context) (string, error) {
	if b.devserver == "" {
		built, err := b.buildDevserver(ctx)
		if err != nil {
			return "", err
		}
		b.devserver = built
	}
	return filepath.Abs(b.devserver)
}

// buildDevserver compiles the devserver beside the results, where the next run finds it up to date.
func (b *bench) buildDevserver(ctx context.Context) (string, error) {
	root, err := stack.Root(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; or give -devserver", err)
	}
	fmt.Fprintln(b.notes, "building the devserver; the first time this compiles a Temporal server, which takes four to seven minutes")
	binary := filepath.Join(root, "test", "bench", "results", "devserver")
	code, err := b.processes.Run(ctx, processes.Command{
		Name: "build", Path: "go", Args: []string{"build", "-o", binary, "."}, Dir: filepath.Join(root, "devserver"),
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("go build failed:\n%s", b.processes.Tail("build", 40))
	}
	return binary, err
}

// dial connects as the worker command does: nothing is compressed on the way.
func dial(ctx context.Context, address string) (client.Client, error) {
	return client.DialContext(ctx, client.Options{HostPort: address, Logger: silent{},
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}})
}

// silent drops the SDK's log lines: a killed worker makes many, and each would cost time.
type silent struct{}

var _ log.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
