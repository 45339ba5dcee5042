package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// failedOutcome reads how an activity ended without a result. The ledger comes along in every ending.
func failedOutcome(graph string, task *pregel.Task, err error) pregel.Outcome {
	var application *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &application) && application.HasDetails() && application.Type() == graphadapter.NodeFailedType:
		var failure graphadapter.NodeFailure
		if application.Details(&failure) == nil {
			return pregel.Outcome{Error: &failure.Error, Emitted: failure.Emitted, Ledger: failure.Ledger}
		}
	case errors.As(err, &cancelled):
		var stopped graphadapter.NodeCancelled
		if cancelled.HasDetails() && cancelled.Details(&stopped) != nil {
			stopped = graphadapter.NodeCancelled{}
		}
		return pregel.Outcome{
			Error:   &pregel.NodeError{Type: pregel.CancelledType, Message: "cancelled", Graph: graph, Node: task.Node},
			Emitted: stopped.Emitted, Ledger: stopped.Ledger,
		}
	}
	return pregel.Outcome{Error: &pregel.NodeError{Type: "Error", Message: err.Error(), Graph: graph, Node: task.Node}}
}
