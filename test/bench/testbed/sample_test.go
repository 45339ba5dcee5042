package testbed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSample(t *testing.T) {
	require.InDelta(t, 2.0, Sample{3, 1, 2}.Median(), 0)
	require.InDelta(t, 2.5, Sample{4, 1, 2, 3}.Median(), 0)
	require.Equal(t, Sample{2, 4}, Sample{4, 4}.Over(Sample{2, 1}))

	var twenty Sample
	for v := 20; v > 0; v-- {
		twenty = append(twenty, float64(v))
	}
	require.InDelta(t, 19.0, twenty.Percentile(95), 0, "nearest rank: the 19th of 20")
	require.InDelta(t, 1.0, twenty.Min(), 0)
	require.InDelta(t, 20.0, twenty.Max(), 0)
}
