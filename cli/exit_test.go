package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
)

func TestExitOfErrors(t *testing.T) {
	for want, kinds := range map[int][]error{
		ExitUsage:       {superstep.ErrBadInput, superstep.ErrRunning, superstep.ErrNotFailed, usagef("x")},
		ExitNotFound:    {superstep.ErrNotFound},
		ExitRefused:     {superstep.ErrAnswerRefused},
		ExitUnreachable: {superstep.ErrNoServer, superstep.ErrNoWorker},
		ExitNotBegun:    {notBegun("--metrics-addr", errors.New("x"))},
		ExitInterrupted: {interrupt("x")},
		ExitFailed:      {errors.New("anything else")},
	} {
		for _, kind := range kinds {
			_, code := exitOf(kind)
			require.Equal(t, want, code, kind)
			_, code = exitOf(fmt.Errorf("wrapped: %w", &superstep.Error{Kind: kind, Message: "m"}))
			require.Equal(t, want, code, kind)
		}
	}
}

func TestExitOfRuns(t *testing.T) {
	codes := map[superstep.Status]int{
		superstep.StatusFinished: ExitOK, superstep.StatusFailed: ExitFailed, superstep.StatusTerminated: ExitFailed,
		superstep.StatusTimedOut: ExitFailed, superstep.StatusOutOfBudget: ExitFailed, superstep.StatusPaused: ExitWaiting,
		superstep.StatusWaitingEvent: ExitWaiting,
		superstep.StatusWaiting:      ExitWaiting, superstep.StatusStopped: ExitWaiting,
		superstep.StatusCancelled: ExitCancelled, superstep.StatusRunning: ExitFailed,
	}
	for _, status := range statuses {
		want, known := codes[status]
		require.True(t, known, status)
		require.Equal(t, want, exitOfRun(status), status)
	}
}

func TestWrappedErrorKeepsItsText(t *testing.T) {
	known := &superstep.Error{Kind: superstep.ErrNotFound, Thread: "r-7", Message: "gone", Do: "Look.", Cause: errors.New("why")}
	require.Equal(t, errorView{Kind: "not_found", Message: "gone: why", Do: "Look.", Thread: "r-7", Exit: 4}, viewOf(known))
	require.Equal(t, "while looking: gone: why. Look.", viewOf(fmt.Errorf("while looking: %w", known)).Message)
}
