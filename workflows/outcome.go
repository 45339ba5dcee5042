package workflows

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// ended is how an activity ended without a result.
type ended struct {
	outcome pregel.Outcome
	// silent says that it had no worker that could tell: what the outcome has of it is what it had stored.
	silent bool
	// lost says that one of its executions was lost with its worker.
	lost bool
}

// failedOutcome reads how an activity ended without a result. The ledger comes along in every ending.
func failedOutcome(graph string, task *pregel.Task, err error) pregel.Outcome {
	return endOf(graph, task, err).keeping(task)
}

func (e ended) keeping(task *pregel.Task) pregel.Outcome {
	e.outcome.Kept = taskrun.KeptIn(task, e.outcome.Ledger)
	return e.outcome
}

// withoutResult is failedOutcome of a task under way, and notes what of it may not be known.
func (t *tasks) withoutResult(u *underWay, err error) pregel.Outcome {
	e := endOf(t.program.Spec.Name, u.task, err)
	if e.silent && !e.lost { // the server said that it is cancelled
		if u.stored == nil {
			t.doubt.Lost = true
		} else {
			e.outcome, e.lost = lastHeard(u.task, u.stored.Progress, e.outcome), u.stored.Lost()
		}
	}
	if e.lost && t.relaxed() {
		t.doubt.Lost = true
	}
	return e.keeping(u.task)
}

func endOf(graph string, task *pregel.Task, err error) ended {
	var application *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var timeout *temporal.TimeoutError
	failure := pregel.NodeError{Type: "Error", Message: err.Error(), Graph: graph, Node: task.Node}
	switch {
	case errors.As(err, &application) && application.HasDetails() && application.Type() == graphadapter.NodeFailedType:
		var failed graphadapter.NodeFailure
		if application.Details(&failed) == nil {
			return ended{outcome: pregel.Outcome{Error: &failed.Error, Emitted: failed.Emitted, Ledger: failed.Ledger}}
		}
	case errors.As(err, &cancelled):
		failure.Type, failure.Message = pregel.CancelledType, "cancelled"
		var stopped graphadapter.NodeCancelled
		if cancelled.HasDetails() && cancelled.Details(&stopped) == nil {
			return ended{outcome: pregel.Outcome{Error: &failure, Emitted: stopped.Emitted, Ledger: stopped.Ledger}, lost: stopped.Lost}
		}
		return ended{outcome: pregel.Outcome{Error: &failure}, silent: true}
	case errors.As(err, &timeout):
		return ended{outcome: timedOut(task, timeout, failure), silent: true, lost: true}
	}
	return ended{outcome: pregel.Outcome{Error: &failure}}
}

// timedOut reads the last heartbeat of a task whose worker was lost. The server gives such a task to another worker, but
// not when its cancellation was asked for: then that is how it ended.
func timedOut(task *pregel.Task, timeout *temporal.TimeoutError, failure pregel.NodeError) pregel.Outcome {
	if timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		failure.Type, failure.Message = pregel.CancelledType, "cancelled; its worker was lost"
	}
	out := pregel.Outcome{Error: &failure}
	var last graphadapter.Progress
	if !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&last) != nil {
		return out
	}
	return lastHeard(task, last, out)
}

// lastHeard is the end of a task with what its last heartbeat had stored.
func lastHeard(task *pregel.Task, last graphadapter.Progress, out pregel.Outcome) pregel.Outcome {
	if ledger, emitted, err := graphadapter.LastLedger(task.Ledger, last.Tasks[task.Key()]); err == nil {
		out.Ledger, out.Emitted = ledger, emitted
	}
	return out
}
