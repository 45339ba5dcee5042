package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/approval"
	"superstep.dev/workflows/protocol"
)

// Cancel is CancelWith for CancelKeep.
func (c *Client) Cancel(ctx context.Context, thread, reason string) (ThreadView, error) {
	return c.CancelWith(ctx, CancelRequest{Thread: thread, Reason: reason})
}

// CancelWith asks a thread's run to end in the way that the request's mode says, and returns when it has ended, or waits
// for people: the tasks under way are told first, and have ended then. While no worker is there to end it, the request
// stays stored, and the view says running. A run that has finished is returned as it is; with CancelDrop and
// CancelCompensate one that failed, was cancelled or was terminated is cleaned up behind.
//
// Errors: ErrNotFound, ErrBadInput, ErrRunning when the run is being cancelled in another way already, ErrNoServer.
func (c *Client) CancelWith(ctx context.Context, r CancelRequest) (ThreadView, error) {
	if err := checkCancel(r); err != nil {
		return ThreadView{}, err
	}
	r.Mode, r.ID = cmp.Or(r.Mode, CancelKeep), cmp.Or(r.ID, uuid.NewString())
	for {
		v, err := c.cancelOnce(ctx, r)
		if !errors.Is(err, errEnded) {
			return v, err
		}
	}
}

// cancelOnce fails with errEnded when the thread's last run ended, or went on as a new one, before it took the request.
func (c *Client) cancelOnce(ctx context.Context, r CancelRequest) (ThreadView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	switch {
	case err != nil:
		return ThreadView{}, err
	case last.open:
		err = c.cancelOpen(ctx, last, r)
	case r.Mode != CancelKeep && canRetry(last.status):
		last, err = c.cancelBehind(ctx, last, r)
	default:
		return c.Show(ctx, r.Thread)
	}
	if err != nil {
		return ThreadView{}, err
	}
	if err := c.awaitCancelled(ctx, last, r.Mode); err != nil {
		return ThreadView{}, err
	}
	v, err := c.Show(ctx, r.Thread)
	if err == nil && v.Cancel != nil && r.Mode != CancelKeep && v.Cancel.Mode != r.Mode {
		return v, &Error{Kind: ErrRunning, Graph: last.graph, Thread: r.Thread, Do: "Look at it", Command: []string{"show", r.Thread},
			Message: fmt.Sprintf("thread %q was being cancelled with mode %s already: %s came too late", r.Thread, v.Cancel.Mode, r.Mode)}
	}
	return v, err
}

// cancelOpen tells an open run how to end, and the server that it is to: either would do, but tasks that run for long look
// at the server. The reason is the run's alone: to the server it would be plain text, whatever encodes payloads.
func (c *Client) cancelOpen(ctx context.Context, last *lastRun, r CancelRequest) error {
	wire := protocol.CancelRequest{ID: r.ID, Mode: protocol.CancelMode(r.Mode), Reason: r.Reason, By: r.By, Token: r.Token}
	if r.Token == "" { // stored at once: to ask for rules takes a worker, and the last one may just have been lost
		if err := c.signalCancel(ctx, last, wire); err != nil {
			return err
		}
	}
	admitted, unasked := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph})
	if unasked == nil && admitted.Governs {
		return c.update(ctx, last, r.ID, protocol.UpdateCancel, wire, nil) // which says whether they may
	}
	if r.Token != "" {
		return c.signalCancel(ctx, last, wire)
	}
	if unasked != nil {
		return nil // what Temporal is told passes no rules, and nobody is there to say that there are none
	}
	_, err := c.temporal.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: c.cfg.Namespace, Identity: c.cfg.Identity, RequestId: uuid.NewString(),
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: last.thread}, FirstExecutionRunId: last.first,
	})
	var ended *serviceerror.NotFound
	if err != nil && !errors.As(err, &ended) {
		return c.explain(err, last.graph, last.thread)
	}
	return nil
}

// signalCancel stores how an open run is to end. The run holds the request to its rules.
func (c *Client) signalCancel(ctx context.Context, last *lastRun, wire protocol.CancelRequest) error {
	err := c.signal(ctx, last, protocol.SignalCancel, wire)
	var ended *serviceerror.NotFound
	switch {
	case errors.As(err, &ended):
		return errEnded
	case err != nil:
		return c.explain(err, last.graph, last.thread)
	}
	return nil
}

// cancelBehind starts a run that only cleans up behind one that has ended.
func (c *Client) cancelBehind(ctx context.Context, last *lastRun, r CancelRequest) (*lastRun, error) {
	in := protocol.GraphInput{Graph: last.graph, Cancel: &protocol.CancelBehind{
		CancelRequest: protocol.CancelRequest{ID: r.ID, Mode: protocol.CancelMode(r.Mode), Reason: r.Reason, By: r.By, Token: r.Token},
		Suspect:       last.status != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && last.status != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
	}}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(last,
		approval.Control{Op: approval.OpCancel, On: string(r.Mode)}, asker{by: r.By, token: r.Token})}); err != nil && !errors.Is(err, ErrNoWorker) {
		return nil, err
	}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return nil, err
	}
	req := StartRequest{Graph: last.graph, Thread: last.thread}
	req.set(settings)
	v, err := c.launch(ctx, req, in, last)
	return &lastRun{thread: last.thread, graph: last.graph, runID: v.RunID, first: v.RunID, open: true}, err
}

// cancelPause is between two looks at a run that undoes its effects.
const cancelPause = 100 * time.Millisecond

// awaitCancelled waits until a run has ended, or undoes its effects and waits for people; not for long, as both may take
// any time.
func (c *Client) awaitCancelled(ctx context.Context, last *lastRun, mode CancelMode) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if mode == CancelCompensate {
		go func() {
			defer cancel()
			c.awaitParked(bounded, last)
		}()
	}
	if err := c.awaitEnd(bounded, last); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// awaitParked waits until a run that undoes its effects waits for people.
func (c *Client) awaitParked(ctx context.Context, last *lastRun) {
	for ctx.Err() == nil {
		var s protocol.State
		if err := c.query(ctx, last, protocol.QueryOutline, &s); err == nil && s.Cancel != nil && Status(s.Status) == StatusWaiting {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(cancelPause):
		}
	}
}
