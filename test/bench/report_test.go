package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigure(t *testing.T) {
	require.True(t, figure{Value: 1.15, Bar: 1.15}.passed())
	require.True(t, figure{Value: 1.16, Bar: 1.15}.missed())
	require.False(t, figure{Value: 7}.missed(), "a figure without a bar informs")
}

func TestChoose(t *testing.T) {
	o, err := parse([]string{"-run", "^engine"}, t.Output())
	require.NoError(t, err)
	require.Len(t, choose(o.selected), 3)
	require.Len(t, choose(nil), len(measurements))
}
