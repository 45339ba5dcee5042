package superstep

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"superstep.dev/workflows"
)

// maxReason bounds a cancellation's reason, in bytes.
const maxReason = 1000

// Retry continues a thread whose last run failed, was cancelled or was terminated: from its last checkpoint, without
// running again what had finished, and with the settings that the run had. Errors: ErrNotFound, ErrNotFailed, ErrNoWorker, ErrNoServer.
func (c *Client) Retry(ctx context.Context, thread string) (ThreadView, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	if !canRetry(last.status) {
		status := statusOf(last.status)
		return ThreadView{}, &Error{Kind: ErrNotFailed, Graph: last.graph, Thread: thread,
			Message: fmt.Sprintf("thread %q has nothing to retry: its run is %s", thread, status),
			Do:      "Look at it", Command: []string{"show", thread}}
	}
	if _, err := c.admit(ctx, workflows.AdmitRequest{Graph: last.graph}); err != nil {
		return ThreadView{}, err
	}
	in := workflows.GraphInput{Graph: last.graph}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return ThreadView{}, err
	}
	req := StartRequest{Graph: last.graph, Thread: thread}
	req.set(settings)
	return c.launch(ctx, req, in, last)
}

// Cancel asks a thread's open run to end, and returns when it has: the tasks under way are told, and what they did is
// kept. While no worker is there to end it, the request stays stored, and the view says running. A run that has
// already ended is returned as it is. Errors: ErrNotFound, ErrNoServer.
func (c *Client) Cancel(ctx context.Context, thread, reason string) (ThreadView, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	if len(reason) > maxReason {
		return ThreadView{}, &Error{Kind: ErrBadInput, Thread: thread, Message: fmt.Sprintf("a reason has at most %d bytes", maxReason)}
	}
	if last.open {
		_, err := c.temporal.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace: c.cfg.Namespace, Identity: c.cfg.Identity, RequestId: uuid.NewString(), Reason: reason,
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: thread, RunId: last.runID},
		})
		if err != nil {
			return ThreadView{}, c.explain(err, last.graph, thread)
		}
		bounded, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		if err := c.awaitEnd(bounded, last); err != nil && ctx.Err() != nil {
			return ThreadView{}, ctx.Err()
		}
	}
	return c.Show(ctx, thread)
}

// awaitEnd waits for a run's last event.
func (c *Client) awaitEnd(ctx context.Context, last *lastRun) error {
	return c.temporal.GetWorkflow(ctx, last.thread, last.runID).Get(ctx, nil)
}
