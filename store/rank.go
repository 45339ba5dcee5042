package store

import (
	"math"
	"slices"
)

// Cosine is the cosine of the angle between two vectors, -1 to 1; 0 where they differ in length or one has none.
func Cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i, x := range a {
		dot += float64(x) * float64(b[i])
		aa += float64(x) * float64(x)
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return min(1, max(-1, dot/math.Sqrt(aa*bb)))
}

// finite reports whether all of a vector are numbers.
func finite(v []float32) bool {
	return !slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) })
}
