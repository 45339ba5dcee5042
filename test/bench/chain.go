package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/heaproom"
	"superstep.dev/internal/serving"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/thread"
)

const (
	chainRounds = 7
	barChain    = 1.15
)

// The two sides' task queues. Each has a worker of its own in this process, with the same options.
const (
	graphQueue = "bench-graph"
	plainQueue = "bench-plain"
)

// chainWorkerOptions are those of Superstep's workers, given to both sides.
func chainWorkerOptions() worker.Options {
	return worker.Options{
		StickyScheduleToStartTimeout:     time.Second,
		MaxConcurrentWorkflowTaskPollers: 5,
		MaxConcurrentActivityTaskPollers: 5,
		WorkerStopTimeout:                time.Second,
		DisableRegistrationAliasing:      true,
	}
}

// chain compares what a step costs with what Temporal alone takes for it.
func chain(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.StartServer(ctx, false)
	if err != nil {
		return nil, err
	}
	temporal, err := testbed.Dial(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	runs := &chainRuns{temporal: temporal, server: s.Process.PID()}
	stop, err := runs.serve()
	if err != nil {
		return nil, err
	}
	defer stop()
	graph, plain, err := runs.alternate(ctx, b.repeat(chainRounds))
	if err != nil {
		return nil, err
	}
	return []figure{chainFigure(graph, plain)}, s.Process.Stop()
}

// chainRuns starts runs of either side.
type chainRuns struct {
	temporal client.Client
	client   *superstep.Client
	server   int // its process
}

// serve starts both sides' workers, in a process that collects its heap as the worker command does.
func (c *chainRuns) serve() (stop func(), err error) {
	heaproom.Give()
	if c.client, err = superstep.NewClient(c.temporal, superstep.ClientConfig{TaskQueue: graphQueue}); err != nil {
		return nil, err
	}
	graph := worker.New(c.temporal, graphQueue, chainWorkerOptions())
	serving.Register(graph, c.temporal, serving.Config{Graphs: []*graphadapter.Graph{chainGraph().Adapter(), loopGraph().Adapter()}})
	plain := worker.New(c.temporal, plainQueue, chainWorkerOptions())
	registerPlain(plain, c.temporal)
	if err := errors.Join(graph.Start(), plain.Start()); err != nil {
		return nil, err
	}
	return func() {
		graph.Stop()
		plain.Stop()
	}, nil
}

// alternate runs both sides in turn, after one run of each that does not count. Who goes first alternates as well.
func (c *chainRuns) alternate(ctx context.Context, rounds int) (graph, plain trips, err error) {
	sides := []struct {
		run func(context.Context) (trip, error)
		out *trips
	}{{c.runGraph, &graph}, {c.runPlain, &plain}}
	for round := range rounds + 1 {
		for i := range sides {
			side := sides[(round+i)%len(sides)]
			t, err := side.run(ctx)
			if err != nil {
				return nil, nil, err
			}
			if round > 0 {
				*side.out = append(*side.out, t)
			}
		}
	}
	return graph, plain, nil
}

// runGraph starts the graph as users do, and waits for it as they do.
func (c *chainRuns) runGraph(ctx context.Context) (trip, error) {
	id := "chain-" + uuid.NewString()
	return c.travel(ctx, id, chainNodes, func() (runID string, err error) {
		view, err := startThread(ctx, c.client, chainName, id)
		if err != nil {
			return "", err
		}
		return view.RunID, c.wait(ctx, id, chainNodes)
	})
}

// wait returns when a user's program would go on: when the Client says that the run has finished.
func (c *chainRuns) wait(ctx context.Context, id string, steps int) error {
	view, err := c.client.Wait(ctx, id)
	if err == nil && (view.Status != thread.StatusFinished || view.Step != steps) {
		err = fmt.Errorf("run %s is %s after %d steps of %d: %s", id, view.Status, view.Step, steps, view.Error)
	}
	return err
}

// runPlain does the same with the hand-written workflow.
func (c *chainRuns) runPlain(ctx context.Context) (trip, error) {
	id := "plain-" + uuid.NewString()
	return c.travel(ctx, id, chainNodes, func() (runID string, err error) {
		run, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: plainQueue, WorkflowTaskTimeout: 3 * time.Second,
		}, plainWorkflow, chainNodes, chainNote)
		if err != nil {
			return "", err
		}
		return run.GetRunID(), run.Get(ctx, nil)
	})
}

// travel measures one run from outside, and then reads its history.
func (c *chainRuns) travel(ctx context.Context, id string, steps int, run func() (runID string, err error)) (trip, error) {
	began, server, own := time.Now(), testbed.CPU(c.server), testbed.OwnCPU()
	runID, err := run()
	if err != nil {
		return trip{}, err
	}
	t := trip{steps: steps, wall: time.Since(began), serverCPU: testbed.CPU(c.server) - server, workerCPU: testbed.Milliseconds(testbed.OwnCPU() - own)}
	return t, t.read(ctx, c.temporal, id, runID)
}

func chainFigure(graph, plain trips) figure {
	ratio := graph.of(trip.ran).Over(plain.of(trip.ran))
	f := figure{
		Name: "chain", Compares: fmt.Sprintf("%d no-op nodes in sync mode / %d no-op activities by hand, from the call to the result",
			chainNodes, chainNodes),
		Value: ratio.Median(), Unit: "x", Bar: barChain, Rounds: ratio, Details: map[string]testbed.Sample{},
	}
	for _, q := range tripQuantities {
		g, p := graph.of(q.of), plain.of(q.of)
		f.Details["graph, "+q.name], f.Details["plain, "+q.name] = g, p
		f.Notes = append(f.Notes, fmt.Sprintf("%-16s %8.4g against %8.4g   %.3f x", q.name, g.Median(), p.Median(), g.Over(p).Median()))
	}
	return f
}
