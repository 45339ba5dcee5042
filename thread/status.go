package thread

import (
	"slices"

	"superstep.dev/graphadapter/life"
)

// Status is where a thread stands. Each has one cause: a run that somebody paused is not one that failed, and one that
// ran out of time is not one that was cancelled.
type Status string

// The statuses of a thread.
const (
	StatusRunning Status = "running"
	// StatusWaiting: it waits for people to answer its questions.
	StatusWaiting Status = "waiting"
	// StatusWaitingEvent: it waits for events (superstep.WaitEvent), and for no person.
	StatusWaitingEvent Status = "waiting_event"
	// StatusPaused: somebody paused it (superstep unpause THREAD), and what was under way has ended.
	StatusPaused Status = "paused"
	// StatusStopped: it stands at a breakpoint, or was drained; it goes on when it is invoked without input.
	StatusStopped  Status = "stopped"
	StatusFinished Status = "finished"
	// StatusFailed: superstep retry THREAD goes on from its last checkpoint, as after the next two.
	StatusFailed Status = "failed"
	// StatusTimedOut: it failed because a bound on time was over: a node's, a superstep's, an event's that a node would
	// not go on without, or Temporal's own.
	StatusTimedOut Status = "timed_out"
	// StatusOutOfBudget: it failed at a bound on what it may use: its recursion limit, or the size of its history.
	StatusOutOfBudget Status = "out_of_budget"
	StatusCancelled   Status = "cancelled"
	// StatusTerminated: somebody ended it on the server, without a word to the run.
	StatusTerminated Status = "terminated"
)

// Failed reports whether a run with that status failed, for whatever reason: a retry goes on.
func (s Status) Failed() bool {
	return slices.Contains([]Status{StatusFailed, StatusTimedOut, StatusOutOfBudget}, s)
}

// Rests reports whether a run with that status is open and has nothing under way: it goes on when somebody lets it.
func (s Status) Rests() bool {
	return slices.Contains([]Status{StatusWaiting, StatusWaitingEvent, StatusPaused, StatusStopped}, s)
}

// Unfinished reports whether a run with that status is over without having finished.
func (s Status) Unfinished() bool { return s.Failed() || s == StatusCancelled || s == StatusTerminated }

// PauseView says who paused a run, when and why.
type PauseView = life.Paused
