package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// How long the devserver may take. A start is a matter of one to three seconds on an idle machine.
const (
	serverStart = 90 * time.Second
	serverStop  = 20 * time.Second
)

// server is a devserver on a database file of its own.
type server struct {
	address string
	process *process
	stderr  bytes.Buffer // to be read once the process has exited
}

// startServer starts a devserver; stock leaves Temporal's settings as they are. It stops with the bench.
func (b *bench) startServer(ctx context.Context, stock bool) (*server, error) {
	binary, err := b.devserverBinary(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.tempDir, "server")
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(dir, "ready")
	args := []string{"--db", filepath.Join(dir, "bench.db"), "--port", "0", "--headless", "--ready-file", ready, "--log-level", "error"}
	if stock {
		args = append(args, "--stock")
	}
	s := &server{}
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &s.stderr
	if s.process, err = spawn(cmd); err != nil {
		return nil, fmt.Errorf("start the devserver: %w", err)
	}
	b.servers = append(b.servers, s)
	s.address, err = s.awaitReady(ctx, ready)
	return s, err
}

// awaitReady waits for the ready file and returns the address in it.
func (s *server) awaitReady(ctx context.Context, path string) (string, error) {
	deadline := time.After(serverStart)
	for {
		address, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(address)), nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-s.process.exited:
			return "", fmt.Errorf("the devserver ended before it was ready: %s", bytes.TrimSpace(s.stderr.Bytes()))
		case <-deadline:
			return "", fmt.Errorf("the devserver was not ready after %v", serverStart)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (s *server) stop() error { return s.process.stop(serverStop) }

// dial connects to the server.
func (s *server) dial(ctx context.Context) (client.Client, error) { return dial(ctx, s.address) }

func dial(ctx context.Context, address string) (client.Client, error) {
	return client.DialContext(ctx, client.Options{HostPort: address, Logger: silent{}})
}

// silent drops the SDK's log lines: a killed worker makes many, and each would cost time.
type silent struct{}

var _ log.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// devserverBinary returns the devserver to use, which it builds when none was given.
func (b *bench) devserverBinary(ctx context.Context) (string, error) {
	if b.tempDir == "" {
		dir, err := os.MkdirTemp("", "superstep-bench")
		if err != nil {
			return "", err
		}
		b.tempDir = dir
	}
	if b.binary != "" {
		return b.binary, nil
	}
	if b.devserver != "" {
		b.binary = b.devserver
		return b.binary, nil
	}
	built, err := buildDevserver(ctx, b)
	if err != nil {
		return "", err
	}
	b.binary = built
	return built, nil
}

// buildDevserver compiles the devserver beside the results, where the next run finds it up to date.
func buildDevserver(ctx context.Context, b *bench) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "superstep.dev").Output()
	if err != nil {
		return "", errors.New("the devserver's source was not found: run this inside the repository, or give -devserver")
	}
	dir := strings.TrimSpace(string(root))
	binary := filepath.Join(dir, "bench", "results", "devserver")
	fmt.Fprintln(b.notes, "building the devserver; the first time this compiles a Temporal server, which takes four to seven minutes")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = filepath.Join(dir, "devserver")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the devserver: %w\n%s", err, bytes.TrimSpace(out))
	}
	return binary, nil
}

func (b *bench) removeTemp() error {
	if b.tempDir == "" {
		return nil
	}
	return os.RemoveAll(b.tempDir)
}
