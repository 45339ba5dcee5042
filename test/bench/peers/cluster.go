package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/test/bench/testbed"
)

// cluster is a server on one kind of database, with a worker process of Superstep's and one of the hand-written workflows.
type cluster struct {
	store   string
	bed     *testbed.Bed
	server  *testbed.Server
	version string
	// base is what all readings have: the server, and a connection that is not counted.
	base source
	// The connections of the clients, and what they count. The one of here serves the graphs as well.
	ours, byHand, here                client.Client
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
	t.base.serverPIDs = []int{t.server.Process.PID()}
	if t.store == "sqlite" {
		t.base.wal = indexFile(t.bed.Dir)
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	info, err := t.base.temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return err
	}
	t.version = cmp.Or(info.GetServerVersion(), "unknown")
	if t.oursWorker, err = startWorker(ctx, t.bed, superstepQueue, t.server.Address, nil); err != nil {
		return err
	}
	if t.floorWorker, err = startWorker(ctx, t.bed, floorQueue, t.server.Address, nil); err != nil {
		return err
	}
	return t.serveHere(ctx)
}

func (t *cluster) connect(ctx context.Context) (err error) {
	t.oursCalls, t.byHandCalls, t.hereCalls = newCalls(), newCalls(), newCalls()
	for _, one := range []struct {
		c     *client.Client
		calls *calls
	}{{&t.base.temporal, newCalls()}, {&t.ours, t.oursCalls}, {&t.byHand, t.byHandCalls}, {&t.here, t.hereCalls}} {
		if *one.c, err = testbed.Dial(ctx, t.server.Address, one.calls.option()); err != nil {
			return err
		}
		t.ends = append(t.ends, func() error { (*one.c).Close(); return nil })
	}
	return nil
}

// serveHere serves the graphs in this process, and returns when its worker polls.
func (t *cluster) serveHere(ctx context.Context) error {
	ready, ended := make(chan struct{}), make(chan error, 1)
	w, err := newWorker(t.here, hereQueue, func() { close(ready) })
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
		source *source
	}{
		{"client", byClient, superstepQueue, t.ours, &ours},
		{"thread", byThread, superstepQueue, t.ours, &ours},
		{"here", byThread, hereQueue, t.here, &here},
	} {
		u := caller.user
		u.graphs = graphs()
		if t.server != nil {
			u.client, _ = superstep.NewClient(caller.c, superstep.ClientConfig{TaskQueue: caller.queue}) // of a connection that is there
		}
		for _, mode := range modes {
			out = append(out, &way{
				name: "superstep " + t.store + " " + mode.name + " " + caller.name, mode: mode.name, do: u.do(mode.name), source: caller.source,
				can:       func(w *workload) bool { return !w.kills && (!w.long() || caller.name == w.caller()) },
				floor:     func(w *workload) string { return "floor " + t.store + " " + floorOf(w, mode.name) },
				langgraph: func(*workload) string { return mode.langgraph },
			})
		}
	}
	for _, floor := range floors {
		out = append(out, &way{name: "floor " + t.store + " " + floor.kind, do: byHand(t.byHand, floor.do), source: &byHandSource,
			can: func(w *workload) bool { return !w.kills && floor.can(w) }, floor: noWay, langgraph: noWay})
	}
	return append(out, t.killWays()...)
}
