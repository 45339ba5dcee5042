package main

import (
	"context"
	"fmt"
)

const (
	engineRounds = 21
	loopSteps    = 20_000
	fewSends     = 10_000
	manySends    = 2 * fewSends
	// sendsRuns is how many wide runs a round takes the mean of: garbage is collected every few of them, and whoever
	// runs then pays for the others.
	sendsRuns = 10
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
	var rounds costs
	for range b.repeat(engineRounds) {
		c, err := costOf(ctx, func() error { return runLoop(program, loopSteps) })
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, c.over(loopSteps*1e-3)) // in µs
	}
	return []figure{{
		Name: "engine/step", Compares: fmt.Sprintf("one superstep of a node that loops on itself, mean of %d", loopSteps),
		Value: rounds.elapsed().Median(), Unit: "µs", Bar: barStep, Rounds: rounds.elapsed(), Notes: []string{rounds.note("µs")},
	}}, nil
}

// engineSends measures a wide superstep of the engine alone, and how its cost grows. Both sides of a round make the
// same number of Sends in all, and who goes first alternates.
func engineSends(ctx context.Context, b *bench) ([]figure, error) {
	program, err := sendsProgram()
	if err != nil {
		return nil, err
	}
	sides := []struct {
		count, runs int
		out         costs
	}{{count: fewSends, runs: 2 * sendsRuns}, {count: manySends, runs: sendsRuns}}
	for round := range b.repeat(engineRounds) {
		for i := range sides {
			side := &sides[(round+i)%len(sides)]
			sends := makeSends(side.count)
			c, err := costOf(ctx, func() error { return repeat(side.runs, func() error { return runSends(program, sends) }) })
			if err != nil {
				return nil, err
			}
			side.out = append(side.out, c.over(float64(side.runs)))
		}
	}
	few, many := sides[0].out, sides[1].out
	growth := many.cpu().Over(few.cpu())
	return []figure{
		{
			Name: "engine/sends", Compares: fmt.Sprintf("%d Sends in one superstep", fewSends),
			Value: few.elapsed().Median(), Unit: "ms", Bar: barSends, Rounds: few.elapsed(), Notes: []string{few.note("ms")},
		},
		{
			Name: "engine/sends growth", Compares: fmt.Sprintf("processor time of %d Sends in one superstep / of %d", manySends, fewSends),
			Value: growth.Median(), Unit: "x", Bar: barGrowth, Rounds: growth, Notes: []string{many.note("ms")},
		},
	}, nil
}

func repeat(n int, f func() error) error {
	for range n {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
