package remote

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
	"superstep.dev/graphadapter"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// CancelRun implements runtime.Runtime.
func (c *Threads) CancelRun(ctx context.Context, _ *graphadapter.Graph, r thread.CancelRequest) (thread.View, error) {
	if err := runtime.CheckCancel(r); err != nil {
		return thread.View{}, err
	}
	r.Mode, r.ID = cmp.Or(r.Mode, thread.CancelKeep), cmp.Or(r.ID, uuid.NewString())
	for {
		v, err := c.cancelOnce(ctx, r)
		if !errors.Is(err, errEnded) {
			return v, err
		}
	}
}

// cancelOnce fails with errEnded when the thread's last run ended, or went on as a new one, before it took the request.
func (c *Threads) cancelOnce(ctx context.Context, r thread.CancelRequest) (thread.View, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	switch {
	case err != nil:
		return thread.View{}, err
	case last.open:
		err = c.cancelOpen(ctx, last, r)
	case r.Mode != thread.CancelKeep && canRetry(last.status):
		last, err = c.cancelBehind(ctx, last, r)
	default:
		return c.Show(ctx, r.Thread)
	}
	if err != nil {
		return thread.View{}, err
	}
	if err := c.awaitCancelled(ctx, last, r.Mode); err != nil {
		return thread.View{}, err
	}
	v, err := c.Show(ctx, r.Thread)
	if err == nil && v.Cancel != nil && r.Mode != thread.CancelKeep && v.Cancel.Mode != r.Mode {
		return v, &thread.Error{Kind: thread.ErrRunning, Graph: last.graph, Thread: r.Thread, Do: "Look at it", Command: []string{"show", r.Thread},
			Message: fmt.Sprintf("thread %q was being cancelled with mode %s already: %s came too late", r.Thread, v.Cancel.Mode, r.Mode)}
	}
	return v, err
}

// cancelOpen tells an open run how to end, and the server that it is to: either would do, but tasks that run for long look
// at the server. The reason is the run's alone: to the server it would be plain text, whatever encodes payloads.
func (c *Threads) cancelOpen(ctx context.Context, last *lastRun, r thread.CancelRequest) error {
	wire := protocol.CancelRequest{ID: r.ID, Mode: r.Mode, Reason: r.Reason, By: r.By, Token: r.Token}
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
func (c *Threads) signalCancel(ctx context.Context, last *lastRun, wire protocol.CancelRequest) error {
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
func (c *Threads) cancelBehind(ctx context.Context, last *lastRun, r thread.CancelRequest) (*lastRun, error) {
	in := protocol.GraphInput{Graph: last.graph, Cancel: &protocol.CancelBehind{
		CancelRequest: protocol.CancelRequest{ID: r.ID, Mode: r.Mode, Reason: r.Reason, By: r.By, Token: r.Token},
		Suspect:       last.status != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && last.status != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
	}}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(last,
		approval.Control{Op: approval.OpCancel, On: string(r.Mode)}, runtime.Asker{By: r.By, Token: r.Token})}); err != nil && !errors.Is(err, thread.ErrNoWorker) {
		return nil, err
	}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return nil, err
	}
	req := runtime.Start{StartRequest: thread.StartRequest{Graph: last.graph, Thread: last.thread}}
	req.Restore(settings)
	v, err := c.launch(ctx, req, in, last)
	return &lastRun{thread: last.thread, graph: last.graph, runID: v.RunID, first: v.RunID, open: true}, err
}

// cancelPause is between two looks at a run that undoes its effects.
const cancelPause = 100 * time.Millisecond

// awaitCancelled waits until a run has ended, or undoes its effects and waits for people; not for long, as both may take
// any time.
func (c *Threads) awaitCancelled(ctx context.Context, last *lastRun, mode thread.CancelMode) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if mode != thread.CancelKeep { // a run that undoes its effects may wait for people by now, whatever it is told
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
func (c *Threads) awaitParked(ctx context.Context, last *lastRun) {
	for ctx.Err() == nil {
		var s protocol.State
		if err := c.query(ctx, last, protocol.QueryOutline, &s); err == nil && s.Cancel != nil && thread.Status(s.Status) == thread.StatusWaiting {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(cancelPause):
		}
	}
}
