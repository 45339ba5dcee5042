package remote

import (
	"cmp"
	"context"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"superstep.dev/internal/codec"
	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// carryOver puts what the last run left into the input of the next, and returns the settings that it had; nil when it is
// not known.
func (c *reader) carryOver(ctx context.Context, last *lastRun, in *protocol.GraphInput) (settings *protocol.Settings, err error) {
	left, _, err := c.left(ctx, last)
	if err != nil {
		return nil, err
	}
	if left.State == nil && left.Failure != nil && left.Failure.Type == protocol.ErrTypeBadInput {
		return left.Settings, nil // the thread's first run could not begin
	}
	if left.State == nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the thread cannot be continued: " +
			cmp.Or(left.Closing.Error, "its last run left no state"), Do: "Fork an earlier checkpoint as a new thread",
			Command: []string{"history", last.thread}}
	}
	if c := left.Cancel; c != nil && c.Halted != "" && in.Cancel == nil && !in.Replay {
		return nil, runtime.Halted(last.graph, last.thread, c.Halted)
	}
	in.Suspects, in.Behind, in.TraceBefore = left.Suspect, left.Behind, left.Trace
	in.Spec, in.State, in.Life, in.Lines = left.Spec, left.State, left.Life, left.Lines
	if last.status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		in.Failed, in.Suspect, in.Behind = true, left.Cancel == nil || !left.Cancel.Renewed, 1
	}
	return left.Settings, nil
}

// left returns what a closed run left behind, from its last event; one that was ended from outside said nothing, and
// is asked through a worker. The message is why the run failed, "" if it did not.
func (c *reader) left(ctx context.Context, last *lastRun) (result protocol.GraphResult, message string, err error) {
	if result, known := c.endings.of(last.thread, last.runID); known {
		return result, "", nil
	}
	event, err := c.closingEvent(ctx, last)
	if err != nil {
		return result, "", c.explain(err, last.graph, last.thread)
	}
	result, said, err := c.leftIn(ctx, last, event)
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		if err == nil {
			c.endings.keep(last.thread, ending{last.runID, result})
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		if result.Cancel == nil || result.Cancel.Reason == "" {
			message = c.cancelReason(ctx, last)
		} else {
			message = result.Cancel.Reason
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		message = codec.Message(c.cfg.DataConverter, event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		message = "terminated: " + event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
	}
	if said || err != nil {
		return result, message, err
	}
	if message == "" {
		message = "ended from outside"
	}
	result.Graph = last.graph
	err = c.query(ctx, last, protocol.QueryHandoff, &result.Closing)
	return result, message, err
}

// leftIn reads a run's last event; said is false when it was not the run itself that ended it, or it could not say more
// than why. What an expert's run keeps from its leader is read from its history.
func (c *reader) leftIn(ctx context.Context, last *lastRun, event *historypb.HistoryEvent) (result protocol.GraphResult, said bool, err error) {
	if result, said, err = c.saidIn(event); err != nil {
		return result, said, cmp.Or(storageError(last.thread, err), sealedError(last.thread, err), err)
	}
	if result.Stored {
		result, err = c.storedResult(ctx, last)
	}
	return result, said, err
}

func (c *reader) saidIn(event *historypb.HistoryEvent) (result protocol.GraphResult, said bool, err error) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return result, true, c.decode(event.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &result)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return result, true, c.decode(event.GetWorkflowExecutionCanceledEventAttributes().GetDetails(), &result)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		details := failureDetails(event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		return result, details != nil, c.decode(details, &result)
	}
	return result, false, nil
}

func failureDetails(f *failurepb.Failure) *commonpb.Payloads {
	return f.GetApplicationFailureInfo().GetDetails()
}

// cancelReason returns what was said when a cancelled run was cancelled: by a Client with its request, which goes through
// the data converter; by another of Temporal's clients with the server's.
func (c *reader) cancelReason(ctx context.Context, last *lastRun) string {
	const unsaid = "cancelled"
	events, err := c.newestEvents(ctx, last)
	if err != nil {
		return unsaid // the run is cancelled all the same
	}
	for _, e := range events {
		if reason := e.GetWorkflowExecutionCancelRequestedEventAttributes().GetCause(); reason != "" {
			return reason
		}
		var req protocol.CancelRequest
		signal := e.GetWorkflowExecutionSignaledEventAttributes()
		if signal.GetSignalName() == protocol.SignalCancel && c.cfg.DataConverter.FromPayloads(signal.GetInput(), &req) == nil && req.Reason != "" {
			return req.Reason
		}
	}
	return unsaid
}

// storedResult reads the result of a leader's expert where its run stored it.
func (c *reader) storedResult(ctx context.Context, last *lastRun) (protocol.GraphResult, error) {
	record, err := c.stored(ctx, last.thread, last.runID, func(r protocol.ExpertRecord) bool { return r.Result != nil })
	if err != nil {
		return protocol.GraphResult{}, c.explain(err, last.graph, last.thread)
	}
	return *record.Result, nil
}

// storedMessage reads what a leader's expert said at the end of an attempt that has finished.
func (c *reader) storedMessage(ctx context.Context, thread, runID string) (job.WorkflowMessage, error) {
	record, err := c.stored(ctx, thread, runID, func(r protocol.ExpertRecord) bool { return r.Message != nil })
	if err != nil {
		return job.WorkflowMessage{}, c.explain(err, "", thread)
	}
	return *record.Message, nil
}

// stored reads what an expert's run stored in its history, right before its last event.
func (c *reader) stored(ctx context.Context, thread, runID string, is func(protocol.ExpertRecord) bool) (record protocol.ExpertRecord, err error) {
	err = c.tail.Stored(ctx, thread, runID, func(payloads *commonpb.Payloads) (bool, error) {
		record = protocol.ExpertRecord{}
		err := c.decode(payloads, &record)
		return is(record), err
	})
	return record, err
}
