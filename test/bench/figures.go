package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/heaproom"
	"superstep.dev/internal/serving"
	"superstep.dev/internal/telemetry"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/thread"
)

const (
	figuresRounds = 15
	// figuresLoops is how many runs of the loop make one round: a single one is over within the noise.
	figuresLoops = 10
	barFigures   = 1.02
)

// ownOnly passes a worker's own figures on, and drops those of Temporal's SDK, which are no cost of ours: their tags are set only where
// one of ours has them.
type ownOnly struct {
	client.MetricsHandler
	tags []map[string]string
}

// WithTags implements client.MetricsHandler.
func (o ownOnly) WithTags(tags map[string]string) client.MetricsHandler {
	return ownOnly{o.MetricsHandler, append(o.tags[:len(o.tags):len(o.tags)], tags)}
}

func (o ownOnly) of(name string) client.MetricsHandler {
	if !strings.HasPrefix(name, "superstep_") {
		return client.MetricsNopHandler
	}
	h := o.MetricsHandler
	for _, tags := range o.tags {
		h = h.WithTags(tags)
	}
	return h
}

// Counter implements client.MetricsHandler.
func (o ownOnly) Counter(name string) client.MetricsCounter { return o.of(name).Counter(name) }

// Gauge implements client.MetricsHandler.
func (o ownOnly) Gauge(name string) client.MetricsGauge { return o.of(name).Gauge(name) }

// Timer implements client.MetricsHandler.
func (o ownOnly) Timer(name string) client.MetricsTimer { return o.of(name).Timer(name) }

// figuresCost compares the processor time of runs on a worker that counts with that on one that does not. Both are in this
// process, and are given runs in turn.
func figuresCost(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.StartServer(ctx, false)
	if err != nil {
		return nil, err
	}
	m, err := telemetry.OpenMetrics(true, "bench", zap.NewNop())
	if err != nil {
		return nil, err
	}
	heaproom.Give()
	sides := make([]*chainRuns, 2) // with figures of its own, and with none
	for i, handler := range []client.MetricsHandler{ownOnly{MetricsHandler: m.Handler}, ownOnly{MetricsHandler: client.MetricsNopHandler}} {
		var stop func()
		if sides[i], stop, err = countingRuns(ctx, s, handler, fmt.Sprintf("bench-figures-%d", i)); err != nil {
			return nil, err
		}
		defer stop()
	}
	var figures []figure
	for _, w := range []struct {
		name, about string
		run         func(context.Context, *chainRuns) (trip, error)
	}{
		{"figures/chain", fmt.Sprintf("%d no-op nodes in sync mode", chainNodes), func(ctx context.Context, c *chainRuns) (trip, error) { return c.runGraph(ctx) }},
		{"figures/async", fmt.Sprintf("%d runs of %d no-op supersteps in async mode", figuresLoops, manySteps), loops(thread.StartRequest{Durability: superstep.DurabilityAsync})},
	} {
		var with, without trips
		out := []*trips{&with, &without}
		for round := range b.repeat(figuresRounds) + 1 {
			for i := range sides {
				side := (round + i) % len(sides)
				t, err := w.run(ctx, sides[side])
				if err != nil {
					return nil, err
				}
				if round > 0 {
					*out[side] = append(*out[side], t)
				}
			}
		}
		cpu := func(t trip) float64 { return t.workerCPU }
		value := with.of(cpu).Median() / without.of(cpu).Median()
		figures = append(figures, figure{Name: w.name, Compares: w.about + ": processor time of client and worker, with figures / without",
			Value: value, Unit: "x", Bar: barFigures, Rounds: with.of(cpu).Over(without.of(cpu)),
			Notes:   []string{fmt.Sprintf("medians of %d: %.4g ms with figures, %.4g ms without", len(with), with.of(cpu).Median(), without.of(cpu).Median())},
			Details: map[string]testbed.Sample{"with, ms CPU": with.of(cpu), "without, ms CPU": without.of(cpu)}})
	}
	return figures, s.Process.Stop()
}

// countingRuns are runs on a worker with that metrics handler.
func countingRuns(ctx context.Context, s *testbed.Server, handler client.MetricsHandler, queue string) (*chainRuns, func(), error) {
	temporal, err := testbed.DialCounting(ctx, s.Address, handler)
	if err != nil {
		return nil, nil, err
	}
	runs := &chainRuns{temporal: temporal, server: s.Process.PID()}
	if runs.client, err = superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: queue}); err != nil {
		return nil, nil, err
	}
	w := worker.New(temporal, queue, chainWorkerOptions())
	serving.Register(w, temporal, serving.Config{Graphs: []*graphadapter.Graph{chainGraph().Adapter(), loopGraph().Adapter()}})
	return runs, func() {
		w.Stop()
		temporal.Close()
	}, w.Start()
}

// loops runs the loop several times, as one trip.
func loops(req thread.StartRequest) func(context.Context, *chainRuns) (trip, error) {
	return func(ctx context.Context, c *chainRuns) (all trip, err error) {
		for range figuresLoops {
			id := "figures-" + uuid.NewString()
			own := testbed.OwnCPU()
			req.Graph, req.Thread, req.Input = loopName, id, fmt.Appendf(nil, `{"note":%q}`, chainNote)
			if _, err = startRequest(ctx, c.client, req); err == nil {
				err = c.wait(ctx, id, manySteps)
			}
			if err != nil {
				return all, err
			}
			all.workerCPU += testbed.Milliseconds(testbed.OwnCPU() - own)
		}
		return all, nil
	}
}
