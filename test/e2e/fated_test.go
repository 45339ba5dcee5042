package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"syscall"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/test/chaos/fault"
	"superstep.dev/test/processes"
)

// diesAt names the moment at which a worker of these tests' graphs dies, and diesIn the directory in which it notes that before.
const (
	diesAt = "SUPERSTEP_E2E_DIES_AT"
	diesIn = "SUPERSTEP_E2E_DIES_IN"
)

// fatedProgram is a worker of these tests' graphs that kills itself the first time that a moment comes: nothing happens in between, as
// it would until another process had heard of it. [rig.died] counts those that did.
func (r *rig) fatedProgram(name, moment string) processes.Command {
	c := r.program(name)
	c.Env = append(c.Env, diesAt+"="+moment, diesIn+"="+r.dir)
	return c
}

// restart runs the n-th of these commands behind the end of the one before, until the test ends.
func (r *rig) restart(command func(n int) processes.Command) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for n := 0; ctx.Err() == nil; n++ {
			_, _ = r.set.Run(ctx, command(n)) // it ends as the node makes it
		}
	}()
	r.t.Cleanup(func() { stop(); <-gone })
}

// died counts the workers that have died at a moment.
func (r *rig) died(moment string) int { return r.ran(deathAt(moment)) }

func deathAt(moment string) string { return "died " + moment }

// fated is the program of such a worker. It has a connection of its own, so it knows only the flags that it needs.
func fated(moment string, args []string) (exit int) {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	address := f.String("address", "", "host:port of the Temporal server")
	queue := f.String("task-queue", "", "task queue")
	silence := f.Duration("lost-after", 0, "time of silence after which a worker counts as lost")
	ready := f.String("ready-file", "", "file to write when tasks are taken")
	if err := f.Parse(args); err != nil {
		return 2
	}
	dies := fault.New(moment, 1, func() {
		if err := noted(os.Getenv(diesIn), deathAt(moment)); err != nil {
			panic(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	})
	temporal, err := client.Dial(superstep.Watched(client.Options{HostPort: *address, Logger: silent{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(dies.Intercept)}}}))
	if err == nil {
		defer temporal.Close()
		err = fatedWorker(temporal, superstep.WorkerConfig{TaskQueue: *queue, Graphs: graphs(), LostAfter: *silence}, *ready)
	}
	fmt.Fprintln(os.Stderr, "a worker that was to die", moment, "has ended:", err)
	return 1
}

func fatedWorker(temporal client.Client, cfg superstep.WorkerConfig, ready string) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	cfg.OnReady = func() {
		if ready == "" {
			return
		}
		if err := os.WriteFile(ready, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
			stop(err)
		}
	}
	w, err := superstep.NewWorker(temporal, cfg)
	if err == nil {
		err = w.Run(ctx)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}
