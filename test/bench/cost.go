package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"superstep.dev/test/bench/testbed"
)

// cost is what something took, in milliseconds: elapsed time, which others on the machine lengthen, and processor
// time of all threads, which the garbage collector's share is part of.
type cost struct{ elapsed, cpu float64 }

func (c cost) over(n float64) cost { return cost{c.elapsed / n, c.cpu / n} }

// costOf measures f, beginning with a clean heap: the garbage of earlier rounds is not its cost, its own is.
func costOf(ctx context.Context, f func() error) (cost, error) {
	if ctx.Err() != nil {
		return cost{}, ctx.Err()
	}
	runtime.GC()
	began, own := time.Now(), testbed.OwnCPU()
	err := f()
	return cost{testbed.Milliseconds(time.Since(began)), testbed.Milliseconds(testbed.OwnCPU() - own)}, err
}

// costs are those of several rounds.
type costs []cost

func (c costs) elapsed() testbed.Sample { return c.each(func(one cost) float64 { return one.elapsed }) }
func (c costs) cpu() testbed.Sample     { return c.each(func(one cost) float64 { return one.cpu }) }

func (c costs) each(of func(cost) float64) testbed.Sample {
	out := make(testbed.Sample, len(c))
	for i, one := range c {
		out[i] = of(one)
	}
	return out
}

func (c costs) note(unit string) string {
	return fmt.Sprintf("%.3g %s elapsed, %.3g %s of processor time with the garbage collector's", c.elapsed().Median(), unit,
		c.cpu().Median(), unit)
}
