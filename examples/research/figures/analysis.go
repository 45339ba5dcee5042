package figures

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
)

// Method is how a mean is taken when birds were not measured.
type Method string

// The methods.
const (
	// PerBird divides by the birds of the species. It is quick, and too small as soon as one of them was not measured.
	PerBird Method = "per bird"
	// PerMeasuredBird divides by the birds that were measured.
	PerMeasuredBird Method = "per measured bird"
)

// Figure describes one measure of a species.
type Figure struct {
	Measure Measure `json:"measure"`
	// N is how many birds the mean is taken over.
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	// SD is the standard deviation of the sample, 0 for a single bird.
	SD float64 `json:"sd"`
	// Low and High bound the mean with 95% confidence, by the percentile bootstrap.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Analysis describes a species.
type Analysis struct {
	Species string `json:"species"`
	Method  Method `json:"method"`
	// Birds counts all of the species, measured or not.
	Birds   int      `json:"birds"`
	Figures []Figure `json:"figures"`
}

// Bounds of how often a sample is drawn again for the interval of a mean.
const (
	DefaultResamples = 2_000
	MaxResamples     = 2_000_000
)

// NoValuesError says that nothing can be computed: of a species nothing of a kind was measured.
type NoValuesError struct {
	Species string
	Measure Measure
}

// Error names both.
func (e *NoValuesError) Error() string {
	return fmt.Sprintf("no %s of %s was measured", e.Measure.Label(), e.Species)
}

// Describe computes one figure of the birds of one species. The same birds always give the same figure: what the bootstrap
// draws follows from species and measure. It fails with a *[NoValuesError], or with the cause of ctx when that ends.
func Describe(ctx context.Context, birds Table, species string, m Measure, how Method, resamples int) (Figure, error) {
	values := birds.Of(species).Measured(m)
	if len(values) == 0 {
		return Figure{}, &NoValuesError{species, m}
	}
	f := Figure{Measure: m, N: len(values)}
	if how == PerBird {
		f.N = len(birds.Of(species))
	}
	f.Mean = sum(values) / float64(f.N)
	f.SD = deviation(values, f.Mean)
	var err error
	f.Low, f.High, err = interval(ctx, values, f.N, rand.New(rand.NewPCG(seed(species), seed(string(m)))),
		min(max(resamples, 1), MaxResamples))
	return f, err
}

func seed(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

func deviation(values []float64, mean float64) float64 {
	if len(values) < 2 {
		return 0
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}

// interval draws the sample again and again, and returns between which means 95% of these samples have theirs.
func interval(ctx context.Context, values []float64, n int, draw *rand.Rand, resamples int) (low, high float64, err error) {
	const between = 1000 // looks at ctx
	means := make([]float64, resamples)
	for i := range means {
		if i%between == 0 && ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		total := 0.0
		for range values {
			total += values[draw.IntN(len(values))]
		}
		means[i] = total / float64(n)
	}
	slices.Sort(means)
	return means[int(0.025*float64(resamples))], means[int(0.975*float64(resamples))], nil
}
