package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/workflows/protocol"
)

// MaxEvents bounds a run's history, as graphadapter.HistoryRoom bounds its bytes: the server terminates a run at 51,200 events or
// 50 MiB, without a word to the run. Before that the run ends itself, with its state, so that a retry goes on in a new history.
const MaxEvents = 45_000

// HistoryFullError says that a run's history is full. Nothing is lost: a retry of the thread goes on from there.
type HistoryFullError struct {
	Events, Bytes int
	// Cause is why the run was not continued as a new one; nil when it could not be said.
	Cause error
}

func (e *HistoryFullError) Error() string {
	text := fmt.Sprintf("the run's history is full (%d events, %d bytes): retry the thread, it goes on where it stands",
		e.Events, e.Bytes)
	if e.Cause != nil {
		text += "; " + e.Cause.Error()
	}
	return text
}

// Unwrap returns why the run was not continued.
func (e *HistoryFullError) Unwrap() error { return e.Cause }

// ErrorType names the kind of failure in stored data.
func (e *HistoryFullError) ErrorType() string { return "HistoryFull" }

// GiveWay lets the other coroutines have a turn: what came with one workflow task, as a cancellation and the signal that says
// how, is taken in by all of them before this one goes on.
func GiveWay(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	turned := false
	workflow.Go(ctx, func(workflow.Context) { turned = true }) // the last in turn
	_ = workflow.Await(ctx, func() bool { return turned })
}

// noRoom refuses what would make a run that rests grow beyond what the server keeps.
func (r *run) noRoom(ctx workflow.Context) error {
	if r.historyFull(ctx) == nil {
		return nil
	}
	return protocol.Refuse(protocol.ErrTypeBusy, "the run's history is full: cancel the thread, it goes on in a new run, then send this again")
}

// historyFull returns a *HistoryFullError when the run must not grow any more.
func (r *run) historyFull(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	events, bytes := info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()
	if events > MaxEvents || bytes > graphadapter.HistoryRoom {
		return &HistoryFullError{Events: events, Bytes: bytes, Cause: r.notContinued}
	}
	return nil
}

// TooLargeError says that what a run would hand on to the one that continues it does not fit one event.
type TooLargeError struct{ Bytes int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the thread's state is too large to go on in a new run (%d bytes with what goes along, at most %d fit): keep "+
		"large values outside and references in the state", e.Bytes, protocol.MaxPayloadBytes)
}
