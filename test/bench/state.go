package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/workflows/protocol"
)

const (
	stateBytes  = 64 << 10
	stateRounds = 3
	// barStateHistory is a tenth of what handing on the state takes; the input and the end alone are a hundredth.
	barStateHistory = 0.1
)

// The sides of the measurement, each with a task queue of its own.
const (
	// hotQueue has one worker, which has in memory what its nodes read.
	hotQueue = "bench-hot"
	// coldQueue has a worker that decides and one that runs the nodes, which keeps nothing: each node's state is found
	// by replaying the run.
	coldQueue = "bench-cold"
	// valueQueue has the hand-written workflow.
	valueQueue = "bench-value"
)

// state compares what a step costs when all nodes read a state that is not small.
func state(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.StartServer(ctx, false)
	if err != nil {
		return nil, err
	}
	temporal, err := testbed.Dial(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	runs := &stateRuns{temporal: temporal, note: strings.Repeat("0123456789abcdef", stateBytes/16)}
	stop, err := runs.serve()
	defer stop()
	if err != nil {
		return nil, err
	}
	sides, err := runs.alternate(ctx, b.repeat(stateRounds))
	if err != nil {
		return nil, err
	}
	return stateFigures(sides), s.Process.Stop()
}

// stateRuns starts runs of the three sides.
type stateRuns struct {
	temporal client.Client
	note     string
}

// serve starts all workers. stop ends those that were started, also after an error.
func (r *stateRuns) serve() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended []chan error
	stop = func() {
		cancel()
		for _, e := range ended {
			<-e // a worker that was told to stop has nothing to say
		}
	}
	decides, runs := chainWorkerOptions(), chainWorkerOptions()
	decides.LocalActivityWorkerOnly, runs.DisableWorkflowWorker = true, true
	for _, cfg := range []superstep.WorkerConfig{
		{TaskQueue: hotQueue, Options: chainWorkerOptions()},
		{TaskQueue: coldQueue, Options: decides},
		{TaskQueue: coldQueue, Options: runs, InputBytes: 1},
	} {
		cfg.Graphs = []superstep.Runnable{chainGraph()}
		w, err := superstep.NewWorker(r.temporal, cfg)
		if err != nil {
			return stop, err
		}
		one := make(chan error, 1)
		ended = append(ended, one)
		go func() { one <- w.Run(ctx) }()
	}
	value := worker.New(r.temporal, valueQueue, chainWorkerOptions())
	value.RegisterWorkflowWithOptions(runValueWorkflow, workflow.RegisterOptions{Name: valueWorkflow})
	value.RegisterActivityWithOptions(runValueActivity, activity.RegisterOptions{Name: valueActivity})
	if err := value.Start(); err != nil {
		return stop, err
	}
	end := stop
	return func() {
		value.Stop()
		end()
	}, nil
}

// The hand-written side: each activity is given the state.
const (
	valueWorkflow = "bench.value"
	valueActivity = "bench.read"
)

func runValueWorkflow(ctx workflow.Context, steps int, note string) error {
	ctx = workflow.WithActivityOptions(ctx, plainActivityOptions())
	for i := range steps {
		if err := workflow.ExecuteActivity(ctx, valueActivity, plainStep{Step: i, Note: note}).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func runValueActivity(_ context.Context, in plainStep) (int, error) { return in.Step, nil }

// stateTrips are the runs of each side.
type stateTrips struct{ hot, cold, value trips }

// alternate runs the sides in turn, after one run of each that does not count.
func (r *stateRuns) alternate(ctx context.Context, rounds int) (out stateTrips, err error) {
	for round := range rounds + 1 {
		for _, side := range []struct {
			run func() (trip, error)
			out *trips
		}{
			{func() (trip, error) { return r.graph(ctx, hotQueue) }, &out.hot},
			{func() (trip, error) { return r.graph(ctx, coldQueue) }, &out.cold},
			{func() (trip, error) { return r.value(ctx) }, &out.value},
		} {
			t, err := side.run()
			if err != nil {
				return out, err
			}
			if round > 0 {
				*side.out = append(*side.out, t)
			}
		}
	}
	return out, nil
}

func (r *stateRuns) graph(ctx context.Context, queue string) (t trip, err error) {
	c, err := superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: queue})
	if err != nil {
		return t, err
	}
	id := queue + "-" + uuid.NewString()
	view, err := startWith(ctx, c, chainName, id, r.note)
	if err != nil {
		return t, err
	}
	var result protocol.GraphResult
	if err := r.temporal.GetWorkflow(ctx, id, view.RunID).Get(ctx, &result); err != nil {
		return t, err
	}
	if result.Step != chainNodes {
		return t, fmt.Errorf("the graph ran %d steps of %d", result.Step, chainNodes)
	}
	return t, t.read(ctx, r.temporal, id, view.RunID)
}

func (r *stateRuns) value(ctx context.Context) (t trip, err error) {
	run, err := r.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "value-" + uuid.NewString(), TaskQueue: valueQueue, WorkflowTaskTimeout: 3 * time.Second,
	}, valueWorkflow, chainNodes, r.note)
	if err != nil {
		return t, err
	}
	if err := run.Get(ctx, nil); err != nil {
		return t, err
	}
	return t, t.read(ctx, r.temporal, run.GetID(), run.GetRunID())
}

func stateFigures(s stateTrips) []figure {
	ratio := func(name, compares string, bar float64, of func(trip) float64, over, under trips) figure {
		r, a, b := over.of(of).Over(under.of(of)), over.of(of), under.of(of)
		return figure{Name: name, Compares: compares, Value: r.Median(), Unit: "x", Bar: bar, Rounds: r,
			Details: map[string]testbed.Sample{"first": a, "second": b},
			Notes:   []string{fmt.Sprintf("%.4g against %.4g", a.Median(), b.Median())}}
	}
	read := fmt.Sprintf("%d nodes that read %d KiB", chainNodes, stateBytes>>10)
	return []figure{
		ratio("state/history", "KiB of history: "+read+" / activities by hand that are given it", barStateHistory, trip.kilobytes, s.hot, s.value),
		ratio("state/hot", "median step in ms: "+read+" / activities by hand that are given it", 0, trip.usualStep, s.hot, s.value),
		ratio("state/cold", "median step in ms: a worker that keeps nothing, and replays the run each time / one that has it", 0,
			trip.usualStep, s.cold, s.hot),
	}
}
