package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheEndsOfAnOpeningTakeAsLongAsOne: a transport that is slow to hear them does not keep a workflow task waiting for each.
func TestTheEndsOfAnOpeningTakeAsLongAsOne(t *testing.T) {
	var e ends
	var until []time.Time
	for range 3 {
		require.True(t, e.keep(func(ctx context.Context) {
			end, _ := ctx.Deadline()
			until = append(until, end)
		}))
	}
	e.say()
	require.Len(t, until, 3)
	require.Equal(t, until[0], until[2])
	require.False(t, e.keep(func(context.Context) {}), "what ends later says so itself")
}
