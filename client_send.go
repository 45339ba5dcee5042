package superstep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// update sends an update and repeats it under the same id while the run cannot take it for the moment: a worker was
// lost, or the run is between two workflow tasks. A run that is continued as a new one takes it there, and knows the id
// of what it had taken before.
func (c *Client) update(ctx context.Context, last *lastRun, id, name string, arg, reply any) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		err := c.updateOnce(ctx, bounded, last, id, name, arg, reply)
		if err == nil || !passing(err) {
			return c.explainUpdate(ctx, err, last.thread)
		}
		select {
		case <-bounded.Done():
			return c.explainUpdate(ctx, err, last.thread)
		case <-time.After(updatePause):
		}
	}
}

// updatePause keeps repeated updates from spinning; nothing that succeeds ever waits for it.
const updatePause = 200 * time.Millisecond

// updateOnce returns when the run has done what the update asks for. Only its acceptance is bounded: what was accepted is
// stored, and may take as long as a node does.
func (c *Client) updateOnce(ctx, accept context.Context, last *lastRun, id, name string, arg, reply any) error {
	handle, err := c.temporal.UpdateWorkflow(accept, client.UpdateWorkflowOptions{
		WorkflowID: last.thread, FirstExecutionRunID: last.first, UpdateID: id, UpdateName: name, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, reply)
}

// errEnded says that an open run has ended before it took a message.
var errEnded = errors.New("it ended first")

// passing reports whether an update may be taken a moment later.
func passing(err error) bool {
	var (
		notReady *serviceerror.WorkflowNotReady
		aborted  *serviceerror.Aborted
		busy     *serviceerror.ResourceExhausted
	)
	return errors.As(err, &notReady) || errors.As(err, &aborted) || errors.As(err, &busy)
}

func (c *Client) explainUpdate(ctx context.Context, err error, thread string) error {
	if err == nil {
		return nil
	}
	var refused *temporal.ApplicationError
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	e := &Error{Thread: thread}
	switch {
	case errors.As(err, &refused) && refused.Type() == protocol.ErrTypeJobRefused:
		return refusedJob(thread, refused)
	case errors.As(err, &refused):
		var why *life.Ruling
		if refused.HasDetails() && life.Kind(refused.Type()) == life.NotAllowed && refused.Details(&why) != nil {
			why = nil
		}
		e = refusedAs(life.Kind(refused.Type()), "", thread, refused.Message(), why)
		if cause := refusedBy(refused); cause != nil && why == nil {
			e.Cause = cause
			e.Message = strings.TrimSuffix(strings.TrimSuffix(e.Message, cause.Error()), ": ")
			if e.Message == "" {
				e.Message = "the run refuses it"
			}
		}
		return e
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		if trouble := c.serverTrouble("", thread); trouble != nil {
			return trouble
		}
		noWorker := &Error{Kind: ErrNoWorker, Thread: thread, Message: "no worker took the message, and it is not stored",
			Do: "Start a worker and send it again; resume --signal stores an answer without one", Command: []string{"worker"}}
		return noWorker
	}
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return &Error{Kind: ErrAnswerRefused, Thread: thread, Message: fmt.Sprintf("the run of thread %q has just ended", thread),
			Do: "Look at it", Command: []string{"show", thread}, Cause: errEnded}
	}
	return c.explain(err, "", thread)
}

// refusedBy is the engine's error for which a run refused a message, nil when it was not the engine's. Its text is the
// message's end.
func refusedBy(refused *temporal.ApplicationError) *pregel.NodeError {
	var cause pregel.NodeError
	if !refused.HasDetails() || refused.Details(&cause) != nil {
		return nil
	}
	return &cause
}

// canRetry says which ends of a run a retry can go on from.
func canRetry(s enumspb.WorkflowExecutionStatus) bool {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return true
	}
	return false
}
