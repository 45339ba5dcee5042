package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	engineRounds = 15
	loopSteps    = 20_000
	fewSends     = 10_000
	manySends    = 2 * fewSends
)

// The engine's bars.
const (
	barStep   = 5.0  // µs
	barSends  = 30.0 // ms
	barGrowth = 2.2
)

// engineStep measures a superstep of the engine alone.
func engineStep(ctx context.Context, b *bench) ([]figure, error) {
	program, err := loopProgram()
	if err != nil {
		return nil, err
	}
	var steps sample
	for range b.repeat(engineRounds) {
		took, err := timed(ctx, func() error { return runLoop(program, loopSteps) })
		if err != nil {
			return nil, err
		}
		steps = append(steps, float64(took.Nanoseconds())/1e3/loopSteps)
	}
	return []figure{{
		Name: "engine/step", Compares: fmt.Sprintf("one superstep of a node that loops on itself, mean of %d", loopSteps),
		Value: steps.median(), Unit: "µs", Bar: barStep, Rounds: steps,
	}}, nil
}

// engineSends measures a wide superstep of the engine alone, and how its cost grows.
func engineSends(ctx context.Context, b *bench) ([]figure, error) {
	program, err := sendsProgram()
	if err != nil {
		return nil, err
	}
	var few, many sample
	a, z := makeSends(fewSends), makeSends(manySends)
	for range b.repeat(engineRounds) {
		once, err := timed(ctx, func() error { return runSends(program, a) })
		if err != nil {
			return nil, err
		}
		twice, err := timed(ctx, func() error { return runSends(program, z) })
		if err != nil {
			return nil, err
		}
		few, many = append(few, milliseconds(once)), append(many, milliseconds(twice))
	}
	growth := many.over(few)
	return []figure{
		{
			Name: "engine/sends", Compares: fmt.Sprintf("%d Sends in one superstep", fewSends),
			Value: few.median(), Unit: "ms", Bar: barSends, Rounds: few,
		},
		{
			Name: "engine/sends growth", Compares: fmt.Sprintf("%d Sends in one superstep / %d", manySends, fewSends),
			Value: growth.median(), Unit: "x", Bar: barGrowth, Rounds: growth,
			Details: map[string]sample{fmt.Sprintf("%d sends, ms", manySends): many},
		},
	}, nil
}

// timed measures f on a clean heap: garbage of an earlier round is not its cost, its own is.
func timed(ctx context.Context, f func() error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	runtime.GC()
	began := time.Now()
	err := f()
	return time.Since(began), err
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
