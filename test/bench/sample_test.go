package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSample(t *testing.T) {
	require.InDelta(t, 2.0, sample{3, 1, 2}.median(), 0)
	require.InDelta(t, 2.5, sample{4, 1, 2, 3}.median(), 0)
	require.Equal(t, sample{2, 4}, sample{4, 4}.over(sample{2, 1}))

	var twenty sample
	for v := 20; v > 0; v-- {
		twenty = append(twenty, float64(v))
	}
	require.InDelta(t, 19.0, twenty.percentile(95), 0, "nearest rank: the 19th of 20")
	require.InDelta(t, 1.0, twenty.min(), 0)
	require.InDelta(t, 20.0, twenty.max(), 0)
}

func TestFigure(t *testing.T) {
	require.True(t, figure{Value: 1.15, Bar: 1.15}.passed())
	require.True(t, figure{Value: 1.16, Bar: 1.15}.missed())
	require.False(t, figure{Value: 7}.missed(), "a figure without a bar informs")
}

func TestChoose(t *testing.T) {
	o, err := parse([]string{"-run", "^engine"}, t.Output())
	require.NoError(t, err)
	require.Len(t, choose(o.selected), 2)
	require.Len(t, choose(nil), len(measurements))
}
