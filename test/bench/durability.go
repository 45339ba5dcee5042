package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/thread"

	"superstep.dev"
)

const durabilityRounds = 5

// The bars of a no-op superstep, against what carries it.
const (
	barSync        = 1.1
	barSyncEvents  = 6.0 // a superstep
	barFused       = 1.3
	barFusedEvents = 10.0 // of all supersteps together
	barEasy        = 0.05 // ms a superstep, in async and exit
)

// onSQLite measures on a database file.
func onSQLite(ctx context.Context, b *bench) ([]figure, error) {
	return b.durability(ctx, "sqlite", "--db", "bench.db")
}

// onPostgres measures on PostgreSQL, and nothing where there is none.
func onPostgres(ctx context.Context, b *bench) ([]figure, error) {
	dsn, p, err := b.StartPostgres(ctx)
	if errors.Is(err, testbed.ErrNoPostgres) {
		fmt.Fprintln(b.Notes, "durability/postgres is left out:", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	figures, err := b.durability(ctx, "postgres", "--postgres", dsn)
	return figures, errors.Join(err, p.Stop())
}

// durability runs 1,000 supersteps in every mode and over the bare transport, in turn, on a server with the given flags.
func (b *bench) durability(ctx context.Context, database string, flags ...string) ([]figure, error) {
	s, err := b.Serve(ctx, flags...)
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
	out, err := everyMode(ctx, append(runs.modes(), b.langGraphModes()...), b.repeat(durabilityRounds))
	if err != nil {
		return nil, err
	}
	return out.figures(database), s.Process.Stop()
}

// mode is one way to take 1,000 steps.
type mode struct {
	name string
	run  func(context.Context) (trip, error)
}

// modes are all ways: ours and those to which they are compared.
func (c *chainRuns) modes() []mode {
	ours := func(name string, req thread.StartRequest) mode {
		return mode{name, func(ctx context.Context) (trip, error) { return c.runLoop(ctx, req) }}
	}
	return []mode{
		{"activity", func(ctx context.Context) (trip, error) { return c.runBare(ctx, plainWorkflow, manySteps) }},
		{"heartbeat", func(ctx context.Context) (trip, error) { return c.runBare(ctx, beatWorkflow, manySteps) }},
		{"one", func(ctx context.Context) (trip, error) { return c.runBare(ctx, plainWorkflow, 1) }},
		{"memory", runInMemory},
		ours("sync", thread.StartRequest{}),
		ours("fused", thread.StartRequest{Fused: true}),
		ours("async", thread.StartRequest{Durability: superstep.DurabilityAsync}),
		ours("exit", thread.StartRequest{Durability: superstep.DurabilityExit}),
	}
}

// modeTrips are the runs of each mode.
type modeTrips map[string]trips

// everyMode runs all modes in turn, after one run of each that does not count. Who goes first rotates.
func everyMode(ctx context.Context, modes []mode, rounds int) (modeTrips, error) {
	out := modeTrips{}
	for round := range rounds + 1 {
		for i := range modes {
			m := modes[(round+i)%len(modes)]
			t, err := m.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			if round > 0 {
				out[m.name] = append(out[m.name], t)
			}
		}
	}
	return out, nil
}

// runBare runs a hand-written workflow.
func (c *chainRuns) runBare(ctx context.Context, workflow string, steps int) (trip, error) {
	id := workflow + "-" + uuid.NewString()
	return c.travel(ctx, id, steps, func() (string, error) {
		run, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: plainQueue, WorkflowTaskTimeout: 3 * time.Second,
		}, workflow, steps, chainNote)
		if err != nil {
			return "", err
		}
		return run.GetRunID(), run.Get(ctx, nil)
	})
}

// figures are the modes' rows on one database.
func (t modeTrips) figures(database string) []figure {
	a := fmt.Sprintf("events a superstep, from the first of %d to the last", manySteps)
	all := fmt.Sprintf("events of all %d supersteps", manySteps)
	return slices.Concat(
		[]figure{
			t.ratio(database, "sync", "activity", barSync), t.events(database, "sync", a, barSyncEvents, trip.eventsStep),
			t.ratio(database, "fused", "heartbeat", barFused), t.events(database, "fused", all, barFusedEvents, trip.eventsBetween),
		},
		t.each(database, "async"), t.toLangGraph(database, "async"),
		[]figure{t.events(database, "async", all, barFusedEvents, trip.eventsBetween)},
		t.each(database, "exit"), t.toLangGraph(database, "exit"),
		[]figure{t.events(database, "exit", all, barFusedEvents, trip.eventsBetween)},
	)
}

// each is what a superstep takes that nothing waits for, as a whole and over the engine in memory, which is what carries it.
func (t modeTrips) each(database, name string) []figure {
	ours, memory, one := t[name].of(trip.perStep), t["memory"].of(trip.perStep), t["one"].of(trip.ran)
	over := make(testbed.Sample, len(ours))
	for i := range ours {
		over[i] = ours[i] - memory[i]
	}
	return []figure{{
		Name:     "durability/" + database + " " + name,
		Compares: fmt.Sprintf("ms a superstep, %d no-op supersteps from the call to the result", manySteps),
		Value:    ours.Median(), Unit: "ms", Bar: barEasy, Rounds: ours,
		Notes: []string{fmt.Sprintf("worker %.3g ms and server %.3g ms of processor time",
			t[name].of(trip.onWorker).Median(), t[name].of(trip.onServer).Median())},
	}, {
		Name:     "durability/" + database + " " + name + " over memory",
		Compares: "the same, less a superstep of the engine in memory, without a server",
		Value:    over.Median(), Unit: "ms", Bar: barEasy, Rounds: over,
		Details: map[string]testbed.Sample{"memory, ms a step": memory, "one activity, ms": one},
		Notes: []string{fmt.Sprintf("in memory %.3g ms a superstep; a whole run by hand, of one activity and no superstep, %.3g ms",
			memory.Median(), one.Median())},
	}}
}

// ratio compares a mode with what carries it.
func (t modeTrips) ratio(database, name, base string, bar float64) figure {
	r := t[name].of(trip.ran).Over(t[base].of(trip.ran))
	f := figure{
		Name:     "durability/" + database + " " + name,
		Compares: fmt.Sprintf("%d no-op supersteps, %s / as many over one %s each, from the call to the result", manySteps, name, base),
		Value:    r.Median(), Unit: "x", Bar: bar, Rounds: r, Details: map[string]testbed.Sample{},
	}
	for _, q := range tripQuantities {
		ours, bare := t[name].of(q.of), t[base].of(q.of)
		if math.IsNaN(ours.Median()) || math.IsNaN(bare.Median()) {
			continue // not of one that only heartbeats, or not told by this system
		}
		f.Details[name+", "+q.name], f.Details[base+", "+q.name] = ours, bare
		f.Notes = append(f.Notes, fmt.Sprintf("%-16s %8.4g against %8.4g   %.3f x", q.name, ours.Median(), bare.Median(), ours.Over(bare).Median()))
	}
	return f
}

func (t modeTrips) events(database, name, what string, bar float64, of func(trip) float64) figure {
	s := t[name].of(of)
	return figure{
		Name: "durability/" + database + " " + name + " events", Compares: what, Value: s.Median(), Bar: bar, Rounds: s,
		Notes: []string{fmt.Sprintf("%.0f in all", t[name].of(trip.eventCount).Median())},
	}
}
