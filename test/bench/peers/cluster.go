package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
	"superstep.dev/thread/storage"
)

// cluster is a server on one kind of database, with a worker process of Superstep's and one of the hand-written workflows.
type cluster struct {
	store string
	bed   *testbed.Bed
	// keeps says that Superstep's workers and clients keep large values in a directory, which values is.
	keeps   bool
	values  *storage.Storage
	server  *testbed.Server
	version string
	// base is what all readings have: the server, and a connection that is not counted.
	base source
	// The connections of the clients, and what they count. The one of here serves the graphs as well.
	ours, byHand, here                client.Client
	hereOptions                       client.Options
	oursCalls, byHandCalls, hereCalls *calls
	oursWorker, floorWorker           *workerProcess
	ends                              []func() error
}

func (t *cluster) stop() error {
	var failed []error
	for i := len(t.ends) - 1; i >= 0; i-- {
		failed = append(failed, t.ends[i]())
	}
	return errors.Join(failed...)
}

func (t *cluster) start(ctx context.Context, dsn string) (err error) {
	flags := []string{"--db", "bench.db"}
	if t.store == "postgres" {
		flags = []string{"--postgres", dsn}
	}
	if t.server, err = t.bed.Serve(ctx, flags...); err != nil {
		return err
	}
	t.base.serverPIDs = append(t.base.serverPIDs, t.server.Process.PID())
	if t.store == "sqlite" {
		t.base.database = sqliteFile(t.server.Dir + "/bench.db")
	}
	if t.keeps {
		if t.base.values, err = os.MkdirTemp(t.bed.Dir, "values"); err != nil {
			return err
		}
		if t.values, err = valuesIn(t.base.values); err != nil {
			return err
		}
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	info, err := t.base.temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return err
	}
	t.version = cmp.Or(info.GetServerVersion(), "unknown")
	if t.oursWorker, err = t.startWorker(ctx, superstepQueue, nil); err != nil {
		return err
	}
	if t.floorWorker, err = t.startWorker(ctx, floorQueue, nil); err != nil {
		return err
	}
	return t.serveHere(ctx)
}

func (t *cluster) connect(ctx context.Context) (err error) {
	t.oursCalls, t.byHandCalls, t.hereCalls = newCalls(), newCalls(), newCalls()
	for _, one := range []struct {
		c     *client.Client
		calls *calls
	}{{&t.base.temporal, newCalls()}, {&t.ours, t.oursCalls}, {&t.byHand, t.byHandCalls}} {
		if *one.c, err = testbed.Dial(ctx, t.server.Address, one.calls.option()); err != nil {
			return err
		}
		t.ends = append(t.ends, func() error { (*one.c).Close(); return nil })
	}
	if t.here, t.hereOptions, err = testbed.DialShared(ctx, t.server.Address, t.values, t.hereCalls.option()); err == nil {
		t.ends = append(t.ends, func() error { t.here.Close(); return nil })
	}
	return err
}

// serveHere serves the graphs in this process, and returns when its worker polls.
func (t *cluster) serveHere(ctx context.Context) error {
	ready, ended := make(chan struct{}), make(chan error, 1)
	w, err := newWorker(t.here, hereQueue, superstep.WorkerConfig{DataConverter: t.hereOptions.DataConverter, FailureConverter: t.hereOptions.FailureConverter,
		Storage: t.values, OnReady: func() { close(ready) }})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { ended <- w.Run(serving) }()
	t.ends = append(t.ends, func() error {
		stop()
		return <-ended
	})
	select {
	case <-ready:
		return nil
	case err := <-ended:
		ended <- nil
		return fmt.Errorf("the worker of this process: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startWorker starts this very program as a worker, and returns when it polls. Output gets what it writes; nil is nobody.
func (t *cluster) startWorker(ctx context.Context, queue string, output io.Writer) (*workerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(t.bed.Dir, "worker")
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(dir, "ready")
	p, err := t.bed.Processes.Start(ctx, processes.Command{Name: queue, Path: self, Args: []string{serveCommand, queue, t.server.Address, ready, t.base.values},
		ReadyFile: ready, Output: output})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, t.bed.Processes.Tail(queue, 20))
	}
	return &workerProcess{p, p.Said()[0]}, nil
}

// ways are all that use this server.
func (t *cluster) ways() (out []*way) {
	ours, byHandSource, here := t.base, t.base, t.base
	ours.clientCalls, byHandSource.clientCalls, here.clientCalls = t.oursCalls, t.byHandCalls, t.hereCalls
	ours.clientPID, byHandSource.clientPID, here.clientPID = os.Getpid(), os.Getpid(), os.Getpid()
	if t.server != nil {
		ours.workerCalls, ours.workerPID = t.oursWorker.calls, t.oursWorker.PID()
		byHandSource.workerCalls, byHandSource.workerPID = t.floorWorker.calls, t.floorWorker.PID()
	}
	for _, caller := range []struct {
		name   string
		user   user
		queue  string
		c      client.Client
		o      client.Options
		source *source
	}{
		{"client", byClient, superstepQueue, t.ours, client.Options{}, &ours},
		{"thread", byThread, superstepQueue, t.ours, client.Options{}, &ours},
		{runsCaller, byRuns, superstepQueue, t.ours, client.Options{}, &ours},
		{"here", byThread, hereQueue, t.here, t.hereOptions, &here},
	} {
		u := caller.user
		u.graphs = graphs()
		if t.server != nil {
			u.client, _ = superstep.NewClient(caller.c, superstep.ClientConfig{TaskQueue: caller.queue, Storage: t.values, // of a connection that is there
				DataConverter: caller.o.DataConverter, FailureConverter: caller.o.FailureConverter})
		}
		for _, mode := range modes {
			out = append(out, &way{
				name: "superstep " + t.store + " " + mode.name + " " + caller.name, mode: mode.name, do: u.do(mode.name), grow: u.grow, source: caller.source,
				can:       func(w *workload) bool { return w.calledBy(caller.name) },
				floor:     func(w *workload) string { return t.floor(w, mode.name) },
				langgraph: against(mode.langgraph),
			})
		}
	}
	for _, floor := range floors {
		out = append(out, &way{name: "floor " + t.store + " " + floor.kind, do: byHand(t.byHand, floor.do), source: &byHandSource,
			can: func(w *workload) bool { return !w.kills && floor.can(w) }, floor: noWay, langgraph: noWay})
	}
	return slices.Concat(out, t.followWays(), t.killWays())
}

// floor is the hand-written program that keeps as much as a mode does.
func (t *cluster) floor(w *workload, mode string) string {
	if kind := floorOf(w, mode); kind != "" {
		return "floor " + t.store + " " + kind
	}
	return ""
}

// followWays are those of a user who follows his runs with the command line, and what the start of it takes of that.
func (t *cluster) followWays() (out []*way) {
	f := &follower{used: new(atomic.Int64)}
	from := t.base
	from.ended = f.used
	if t.server != nil {
		from.workerCalls, from.workerPID = t.oursWorker.calls, t.oursWorker.PID()
		f.connection = []string{"-o", "json", "--address", t.server.Address, "--task-queue", superstepQueue}
		if t.base.values != "" {
			f.connection = append(f.connection, "--storage", t.base.values)
		}
	}
	can := func(w *workload) bool { return !w.kills && !w.long() }
	for _, mode := range modes {
		out = append(out, &way{
			name: strings.Join([]string{"superstep", t.store, mode.name, "follow"}, " "), mode: mode.name, do: f.do(mode.name), source: &from, can: can,
			floor:     func(w *workload) string { return t.floor(w, mode.name) },
			langgraph: against(mode.langgraph),
		})
	}
	return append(out, &way{
		name: "superstep " + t.store + " version", source: &source{ended: f.used}, can: can, floor: noWay, langgraph: noWay,
		do: func(ctx context.Context, _ *workload, id string, _ int) (time.Duration, error) {
			return atOnce(0, id, func(string) error {
				_, _, err := f.run(ctx, commandLine, "version")
				return err
			})
		},
	})
}
