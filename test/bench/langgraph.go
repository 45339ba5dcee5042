package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"superstep.dev"
	"superstep.dev/test/bench/testbed"
)

// barToLangGraph is the bar of async and exit on a machine of any speed: 0.05 ms a superstep, where LangGraph with its
// in-memory saver takes 0.3 ms.
const barToLangGraph = 0.05 / 0.3

//go:embed langgraph.py
var langGraphLoop string

// langGraphModes run the loop on LangGraph itself, in the modes that have a bar; none unless a Python is given that has it.
func (b *bench) langGraphModes() (modes []mode) {
	if b.langgraph == "" {
		return nil
	}
	for _, d := range []superstep.Durability{superstep.DurabilityAsync, superstep.DurabilityExit} {
		modes = append(modes, mode{langGraphName(string(d)), func(ctx context.Context) (trip, error) {
			return runLangGraph(ctx, b.langgraph, string(d))
		}})
	}
	return modes
}

func langGraphName(durability string) string { return "langgraph " + durability }

// runLangGraph runs the loop with a checkpointer in memory. What it takes is told by its own process, which has run it once
// before.
func runLangGraph(ctx context.Context, python, durability string) (trip, error) {
	out, err := exec.CommandContext(ctx, python, "-c", langGraphLoop, durability, strconv.Itoa(manySteps), chainNote).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return trip{}, fmt.Errorf("the loop on LangGraph (-langgraph names a Python that has it: pip install langgraph): %w", err)
	}
	took, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		return trip{}, fmt.Errorf("the loop on LangGraph printed %q: %w", out, err)
	}
	return trip{steps: manySteps, wall: time.Duration(took * float64(time.Millisecond))}, nil
}

// toLangGraph compares a mode with LangGraph's own; nothing when that did not run.
func (t modeTrips) toLangGraph(database, name string) []figure {
	theirs := t[langGraphName(name)].of(trip.perStep)
	if len(theirs) == 0 {
		return nil
	}
	r := t[name].of(trip.perStep).Over(theirs)
	return []figure{{
		Name:     "durability/" + database + " " + name + " to LangGraph",
		Compares: "the same / LangGraph in Python with its in-memory saver, in its mode of that name",
		Value:    r.Median(), Unit: "x", Bar: barToLangGraph, Rounds: r, Details: map[string]testbed.Sample{"langgraph, ms a step": theirs},
		Notes: []string{fmt.Sprintf("LangGraph %.3g ms a superstep", theirs.Median())},
	}}
}
