package sdklog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

func TestDiscreetLeavesOutWhatErrorsSay(t *testing.T) {
	to, logs := observed()
	logger := log.With(Discreet(Discreet(to)), "WorkflowID", "r-7", "Error", errors.New("card 4111"))
	for _, err := range []error{
		errors.New("card 4111"),
		fmt.Errorf("card 4111: %w", context.Canceled),
		fmt.Errorf("card 4111: %w", serviceerror.NewUnavailable("the server is away")),
		temporal.NewApplicationError("card 4111", "superstep.NodeFailed", "card 4111"),
	} {
		logger.Error("Activity error.", "Error", err, "Attempt", 2)
		logger.Warn("answer by signal refused", "reason", err.Error(), "question", "q-1")
	}
	var said []any
	for _, entry := range logs.All() {
		require.NotContains(t, fmt.Sprint(entry.ContextMap()), "4111")
		require.Equal(t, "r-7", entry.ContextMap()["WorkflowID"])
		said = append(said, entry.ContextMap()["Error"])
	}
	require.Equal(t, "*errors.errorString "+NotShown, said[0])
	require.Equal(t, "context canceled", said[2])
	require.Equal(t, "the server is away", said[4])
	require.Equal(t, "superstep.NodeFailed "+NotShown, said[6])
	require.Equal(t, int64(2), logs.All()[0].ContextMap()["Attempt"])
	require.Equal(t, "q-1", logs.All()[1].ContextMap()["question"])
}
