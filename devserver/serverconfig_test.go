package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/dynamicconfig"
)

// TestVisibilityIsWrittenSomeTimesASecond: often enough that a list is at most a second late, seldom enough that writing it does not take the
// database from the runs, and so much at a time that it does not fall behind.
func TestVisibilityIsWrittenSomeTimesASecond(t *testing.T) {
	tuned := settings(false, endpoints{})
	number := func(key dynamicconfig.Key) int {
		t.Helper()
		require.Contains(t, tuned, key)
		require.IsType(t, 0, tuned[key])
		return tuned[key].(int)
	}
	polls, batch := number(dynamicconfig.VisibilityProcessorMaxPollRPS.Key()), number(dynamicconfig.VisibilityTaskBatchSize.Key())
	require.GreaterOrEqual(t, polls, 1)
	require.LessOrEqual(t, polls, 5)
	require.GreaterOrEqual(t, batch, 100)
	require.Equal(t, 1, number(dynamicconfig.VisibilityQueueMaxReaderCount.Key()), "a second reader would wait behind the polls of the first one")
}

// TestBusyQueuesAreNotTakenForStuck: a queue does not store its place with each timer.
func TestBusyQueuesAreNotTakenForStuck(t *testing.T) {
	require.Equal(t, 0, settings(false, endpoints{})[dynamicconfig.QueueReaderStuckCriticalAttempts.Key()])
}
