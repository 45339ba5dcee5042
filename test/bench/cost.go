package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
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
	began, own := time.Now(), ownCPU()
	err := f()
	return cost{milliseconds(time.Since(began)), milliseconds(ownCPU() - own)}, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// costs are those of several rounds.
type costs []cost

func (c costs) elapsed() sample { return c.each(func(one cost) float64 { return one.elapsed }) }
func (c costs) cpu() sample     { return c.each(func(one cost) float64 { return one.cpu }) }

func (c costs) each(of func(cost) float64) sample {
	out := make(sample, len(c))
	for i, one := range c {
		out[i] = of(one)
	}
	return out
}

func (c costs) note(unit string) string {
	return fmt.Sprintf("%.3g %s elapsed, %.3g %s of processor time with the garbage collector's", c.elapsed().median(), unit,
		c.cpu().median(), unit)
}
