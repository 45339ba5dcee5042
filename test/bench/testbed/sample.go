package testbed

import (
	"math"
	"slices"
	"time"
)

// Sample is what one quantity came to, round by round.
type Sample []float64

// Median is the middle value, or the mean of the two middle ones.
func (s Sample) Median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	switch {
	case len(sorted) == 0:
		return math.NaN()
	case len(sorted)%2 == 1:
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Percentile is the nearest-rank percentile: a value that was measured, never one in between.
func (s Sample) Percentile(p float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func (s Sample) Min() float64 { return s.Percentile(0) }
func (s Sample) Max() float64 { return s.Percentile(100) }

// Over divides round by round: what disturbed one round disturbed both sides of it.
func (s Sample) Over(base Sample) Sample {
	out := make(Sample, min(len(s), len(base)))
	for i := range out {
		out[i] = s[i] / base[i]
	}
	return out
}

// Milliseconds is a time as a sample has it.
func Milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
