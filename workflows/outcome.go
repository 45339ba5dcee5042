package workflows

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// failedOutcome reads how an activity ended without a result. The ledger comes along in every ending.
func failedOutcome(graph string, task *pregel.Task, err error) pregel.Outcome {
	out := endOf(graph, task, err)
	out.Kept = graphadapter.KeptIn(task, out.Ledger)
	return out
}

func endOf(graph string, task *pregel.Task, err error) pregel.Outcome {
	var application *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var timeout *temporal.TimeoutError
	failure := pregel.NodeError{Type: "Error", Message: err.Error(), Graph: graph, Node: task.Node}
	switch {
	case errors.As(err, &application) && application.HasDetails() && application.Type() == graphadapter.NodeFailedType:
		var failed graphadapter.NodeFailure
		if application.Details(&failed) == nil {
			return pregel.Outcome{Error: &failed.Error, Emitted: failed.Emitted, Ledger: failed.Ledger}
		}
	case errors.As(err, &cancelled):
		failure.Type, failure.Message = pregel.CancelledType, "cancelled"
		var stopped graphadapter.NodeCancelled
		if cancelled.HasDetails() && cancelled.Details(&stopped) == nil {
			return pregel.Outcome{Error: &failure, Emitted: stopped.Emitted, Ledger: stopped.Ledger}
		}
	case errors.As(err, &timeout):
		return timedOut(task, timeout, failure)
	}
	return pregel.Outcome{Error: &failure}
}

// timedOut reads the last heartbeat of a task whose worker was lost. The server gives such a task to another worker, but
// not when its cancellation was asked for: then that is how it ended.
func timedOut(task *pregel.Task, timeout *temporal.TimeoutError, failure pregel.NodeError) pregel.Outcome {
	if timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		failure.Type, failure.Message = pregel.CancelledType, "cancelled; its worker was lost"
	}
	out := pregel.Outcome{Error: &failure}
	var last graphadapter.NodeProgress
	if !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&last) != nil {
		return out
	}
	out.Emitted = last.Emitted
	if merged, err := graphadapter.MergeLedger(task.Ledger, last.Ledger); err == nil {
		out.Ledger = merged
	}
	return out
}
