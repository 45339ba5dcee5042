package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
)

// The statuses of a run, as queries and search attributes show them. Each has one cause, so that nobody takes a run that
// somebody paused for one that failed.
const (
	StatusRunning = "running"
	// StatusWaiting: it waits for people to answer.
	StatusWaiting = "waiting"
	// StatusWaitingEvent: it waits for events, and for no person.
	StatusWaitingEvent = "waiting_event"
	// StatusPaused: somebody paused it; what was under way has ended.
	StatusPaused = "paused"
	// StatusStopped: it stands at a breakpoint, or was drained.
	StatusStopped  = "stopped"
	StatusFinished = "finished"
	// StatusFailed, StatusTimedOut and StatusOutOfBudget: it failed, for a reason of its own, because a bound on time was
	// over, or because a bound on what it may use was reached. See FailureStatus.
	StatusFailed      = "failed"
	StatusTimedOut    = "timed_out"
	StatusOutOfBudget = "out_of_budget"
	StatusCancelled   = "cancelled"
)

// FailureStatus is the status of a run that failed for that reason; nil is a failure that nobody could explain.
func FailureStatus(failure *pregel.NodeError) string {
	if failure == nil {
		return StatusFailed
	}
	switch failure.Type {
	case "Timeout", "StepTimeout", "EventTimeout":
		return StatusTimedOut
	case "GraphRecursionError", "HistoryFull":
		return StatusOutOfBudget
	}
	return StatusFailed
}

// resting is the status of a run that has no task under way.
func (r *run) resting() string {
	switch {
	case r.paused != nil:
		return StatusPaused
	case r.failure != nil:
		return FailureStatus(failureOf(r.in.Graph, r.failure))
	case r.stands() == pregel.StatusWaiting && len(r.questions()) == 0 && len(r.waits()) > 0:
		return StatusWaitingEvent
	case r.stands() == pregel.StatusWaiting:
		return StatusWaiting
	case r.nothingLeft():
		return StatusFinished
	}
	return StatusStopped
}

// standing reports whether the run stands still, so that its state may be changed.
func (r *run) standing() bool { return r.status != StatusRunning && !r.cancel.undoing }

// show brings the details of Temporal's own screens up to date, which leaves no event, and the search attributes: one
// event, only when people have something new to see.
func (r *run) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, r.details())
	if !r.in.Attributes {
		return
	}
	now := showing{status: r.status, open: len(r.questions())}
	for _, q := range r.unanswered() {
		now.nodes = append(now.nodes, q.Node)
	}
	if r.lists() {
		r.showQuestions(ctx, now)
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, now.attributes()...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not updated", "error", err)
	}
}

// changeClosingStatus names the change that made runs show how they end before they do.
const changeClosingStatus = "closing-status"

// showEnd shows how the run ends: who lists runs that are over sees it without reading their last events.
func (r *run) showEnd(ctx workflow.Context, status string) {
	r.status = status
	workflow.SetCurrentDetails(ctx, r.details())
	if !r.in.Attributes || workflow.GetVersion(ctx, changeClosingStatus, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	err := workflow.UpsertTypedSearchAttributes(ctx, temporal.NewSearchAttributeKeyKeyword(AttributeStatus).ValueSet(status))
	if err != nil {
		workflow.GetLogger(ctx).Warn("the closing status is not shown", "error", err)
	}
}
