package cli

import (
	"errors"
	"fmt"

	"superstep.dev"
)

// The exit codes.
const (
	// ExitOK: what was asked is done; run --follow: the run finished.
	ExitOK = 0
	// ExitFailed: the run failed, or something went wrong that has no code of its own.
	ExitFailed = 1
	// ExitUsage: the command line or the input is not acceptable; nothing was changed.
	ExitUsage = 2
	// ExitWaiting: the run rests: it waits for answers or events, stopped at a breakpoint, or is paused.
	ExitWaiting = 3
	// ExitNotFound: no such thread, question or graph.
	ExitNotFound = 4
	// ExitRefused: the answer was not taken, as the question is not open.
	ExitRefused = 5
	// ExitUnreachable: no server answers, or no worker with that graph.
	ExitUnreachable = 6
	// ExitCancelled: the run was cancelled.
	ExitCancelled = 7
	// ExitNotBegun: the worker could not begin to serve, for a reason on its own machine: the address of its metrics is taken,
	// its ready file cannot be written.
	ExitNotBegun = 8
	// ExitInterrupted: Ctrl-C. A followed run goes on.
	ExitInterrupted = 130
)

// exits maps what went wrong to exit codes. The first match counts.
var exits = []struct {
	kind error
	name string
	code int
}{
	{errInterrupted, "interrupted", ExitInterrupted},
	{errNotBegun, "not_begun", ExitNotBegun},
	{superstep.ErrBadInput, "bad_input", ExitUsage},
	{superstep.ErrRunning, "running", ExitUsage},
	{superstep.ErrNotFailed, "not_failed", ExitUsage},
	{superstep.ErrAnswerRefused, "answer_refused", ExitRefused},
	{superstep.ErrNotFound, "not_found", ExitNotFound},
	{superstep.ErrNoServer, "no_server", ExitUnreachable},
	{superstep.ErrNoWorker, "no_worker", ExitUnreachable},
}

// exitOf returns an error's kind, as programs see it, and its exit code.
func exitOf(err error) (kind string, code int) {
	for _, e := range exits {
		if errors.Is(err, e.kind) {
			return e.name, e.code
		}
	}
	return "failed", ExitFailed
}

// exitOfRun is the exit code of a followed run that stands at status.
func exitOfRun(status superstep.Status) int {
	switch status {
	case superstep.StatusFinished:
		return ExitOK
	case superstep.StatusWaiting, superstep.StatusWaitingEvent, superstep.StatusStopped, superstep.StatusPaused:
		return ExitWaiting
	case superstep.StatusCancelled:
		return ExitCancelled
	default:
		return ExitFailed
	}
}

// statusExit ends a command with an exit code and no message: its screen has said everything.
type statusExit int

// Error implements error.
func (s statusExit) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitWith returns the error that ends a command with code, nil for success.
func exitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return statusExit(code)
}

// isSilent reports whether err is an exit code without a message.
func isSilent(err error) bool {
	var silent statusExit
	return errors.As(err, &silent)
}
