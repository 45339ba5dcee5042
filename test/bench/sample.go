package main

import (
	"math"
	"slices"
)

// sample is what one quantity came to, round by round.
type sample []float64

// median is the middle value, or the mean of the two middle ones.
func (s sample) median() float64 {
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

// percentile is the nearest-rank percentile: a value that was measured, never one in between.
func (s sample) percentile(p float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func (s sample) min() float64 { return s.percentile(0) }
func (s sample) max() float64 { return s.percentile(100) }

// over divides round by round: what disturbed one round disturbed both sides of it.
func (s sample) over(base sample) sample {
	out := make(sample, min(len(s), len(base)))
	for i := range out {
		out[i] = s[i] / base[i]
	}
	return out
}
