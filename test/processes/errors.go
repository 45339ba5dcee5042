package processes

import (
	"fmt"
	"time"
)

// shownLines is how much of a log an error shows.
const shownLines = 20

// ExitError says that a process ended that nobody asked to end.
type ExitError struct {
	// Name is what people call the process, State how it ended: "exit status 1", "signal: killed".
	Name, State string
	// Last are the last lines that it wrote; Log is the path of the whole log.
	Last, Log string
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Last == "" {
		return fmt.Sprintf("%s ended by itself (%s) and wrote nothing", e.Name, e.State)
	}
	return fmt.Sprintf("%s ended by itself (%s); the end of %s:\n%s", e.Name, e.State, e.Log, e.Last)
}

// exitError is how a process that has ended did so.
func (p *Process) exitError() *ExitError {
	return &ExitError{Name: p.Name(), State: p.cmd.ProcessState.String(), Last: p.Tail(shownLines), Log: p.Log()}
}

// NotReadyError says that a process runs and did not get ready in time.
type NotReadyError struct {
	Name  string
	After time.Duration
	Log   string
}

// Error implements error.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("%s is not ready after %v: see %s", e.Name, e.After, e.Log)
}

// KilledError says that a process did not end when it was asked to, and was killed.
type KilledError struct {
	Name  string
	After time.Duration
}

// Error implements error.
func (e *KilledError) Error() string {
	return fmt.Sprintf("%s did not end within %v of being asked to, and was killed", e.Name, e.After)
}

// SignalError is the cause of a context that a signal ended.
type SignalError struct {
	// Signal is its name, Number its number.
	Signal string
	Number int
}

// Error implements error.
func (e *SignalError) Error() string { return "stopped by a signal: " + e.Signal }

// Exit is the exit code that shells give a process ended by the signal.
func (e *SignalError) Exit() int { return 128 + e.Number }
