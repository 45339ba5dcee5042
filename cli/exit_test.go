package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"superstep.dev/thread"
)

func TestExitOfErrors(t *testing.T) {
	for want, kinds := range map[int][]error{
		ExitUsage:       {thread.ErrBadInput, thread.ErrRunning, thread.ErrNotFailed, usagef("x")},
		ExitNotFound:    {thread.ErrNotFound},
		ExitRefused:     {thread.ErrAnswerRefused},
		ExitUnreachable: {thread.ErrNoServer, thread.ErrNoWorker, thread.ErrBusy},
		ExitNotBegun:    {notBegun("--metrics-addr", errors.New("x"))},
		ExitInterrupted: {interrupt("x")},
		ExitFailed:      {errors.New("anything else")},
	} {
		for _, kind := range kinds {
			_, code := exitOf(kind)
			require.Equal(t, want, code, kind)
			_, code = exitOf(fmt.Errorf("wrapped: %w", &thread.Error{Kind: kind, Message: "m"}))
			require.Equal(t, want, code, kind)
		}
	}
}

func TestExitOfRuns(t *testing.T) {
	codes := map[thread.Status]int{
		thread.StatusFinished: ExitOK, thread.StatusFailed: ExitFailed, thread.StatusTerminated: ExitFailed,
		thread.StatusTimedOut: ExitFailed, thread.StatusOutOfBudget: ExitFailed, thread.StatusPaused: ExitWaiting,
		thread.StatusWaitingEvent: ExitWaiting,
		thread.StatusWaiting:      ExitWaiting, thread.StatusStopped: ExitWaiting,
		thread.StatusCancelled: ExitCancelled, thread.StatusRunning: ExitFailed,
	}
	for _, status := range statuses {
		want, known := codes[status]
		require.True(t, known, status)
		require.Equal(t, want, exitOfRun(status), status)
	}
}

func TestWrappedErrorKeepsItsText(t *testing.T) {
	known := &thread.Error{Kind: thread.ErrNotFound, Thread: "r-7", Message: "gone", Do: "Look.", Cause: errors.New("why")}
	require.Equal(t, errorView{Kind: "not_found", Message: "gone: why", Do: "Look.", Thread: "r-7", Exit: 4}, viewOf(known))
	require.Equal(t, "while looking: gone: why. Look.", viewOf(fmt.Errorf("while looking: %w", known)).Message)
}
