package superstep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// needsPast reports whether what a run gives to stream depends on what happened before it was continued as a new one:
// which messages are news, and what is around a subgraph.
func needsPast(r StreamRequest) bool {
	return slices.Contains(r.Modes, StreamMessages) ||
		r.Subgraphs && (slices.Contains(r.Modes, StreamCheckpoints) || slices.Contains(r.Modes, StreamDebug))
}

// firstStreamed returns the run where a stream of a thread begins, or with past where the invocation began that goes on
// there. What the server has no more is left out.
func (c *Client) firstStreamed(ctx context.Context, last *lastRun, from *streamOffset, past bool) (string, error) {
	if from == nil {
		_, err := c.historyLength(ctx, last.thread, last.first)
		if errors.Is(err, ErrNotFound) {
			return last.runID, nil
		}
		return last.first, err
	}
	length, err := c.historyLength(ctx, last.thread, from.run)
	if err == nil && from.event > length {
		err = &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread,
			Message: fmt.Sprintf("the offset is behind event %d of a run that has %d", from.event, length)}
	}
	if err != nil || !past {
		return from.run, err
	}
	in, err := c.inputOf(ctx, last.thread, from.run)
	if err != nil || in.Carried == nil || in.Carried.Began == "" {
		return from.run, err
	}
	if _, err = c.historyLength(ctx, last.thread, in.Carried.Began); errors.Is(err, ErrNotFound) {
		return from.run, nil
	}
	return in.Carried.Began, err
}

// historyLength returns how many events a run of a thread has now.
func (c *Client) historyLength(ctx context.Context, thread, run string) (int64, error) {
	described, err := c.temporal.DescribeWorkflowExecution(ctx, thread, run)
	var gone *serviceerror.NotFound
	var malformed *serviceerror.InvalidArgument
	if errors.As(err, &gone) || errors.As(err, &malformed) {
		return 0, &Error{Kind: ErrNotFound, Thread: thread, Message: fmt.Sprintf("thread %q has no run %q, or no longer", thread, run),
			Do: "Stream without an offset to begin with its newest run"}
	}
	if err != nil {
		return 0, c.explain(err, "", thread)
	}
	return described.GetWorkflowExecutionInfo().GetHistoryLength(), nil
}

// runAfter returns the run that continued a run of a thread, "" when none did.
func (c *Client) runAfter(ctx context.Context, thread, run string) (string, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return "", err
	}
	after := ""
	for at := last.runID; at != run; {
		before, err := c.runBefore(ctx, thread, at)
		if err != nil {
			return "", err
		}
		if before == "" {
			return "", &Error{Kind: ErrNotFound, Graph: last.graph, Thread: thread,
				Message: fmt.Sprintf("what thread %q ran after run %s is no longer known", thread, run),
				Do:      "Stream without an offset to begin with its newest run"}
		}
		after, at = at, before
	}
	return after, nil
}

// runBefore returns the run that a run continued, "" for the thread's first.
func (c *Client) runBefore(ctx context.Context, thread, run string) (string, error) {
	started, err := c.startOf(ctx, thread, run)
	if before := started.GetContinuedExecutionRunId(); before != "" || err != nil {
		return before, err
	}
	var in protocol.GraphInput
	err = c.decode(started.GetInput(), &in)
	return in.Previous, err
}

// startOf returns a run's first event.
func (c *Client) startOf(ctx context.Context, thread, run string) (*historypb.WorkflowExecutionStartedEventAttributes, error) {
	page, err := c.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.cfg.Namespace, MaximumPageSize: 1, Execution: &commonpb.WorkflowExecution{WorkflowId: thread, RunId: run},
	})
	if err != nil {
		return nil, c.explain(err, "", thread)
	}
	events := page.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil, nil
	}
	return events[0].GetWorkflowExecutionStartedEventAttributes(), nil
}

// inputOf returns what a run was started with.
func (c *Client) inputOf(ctx context.Context, thread, run string) (in protocol.GraphInput, err error) {
	started, err := c.startOf(ctx, thread, run)
	if err == nil {
		err = c.decode(started.GetInput(), &in)
	}
	return in, err
}

// explainStream says why a run cannot be streamed.
func (c *Client) explainStream(err error, thread string) error {
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) {
		return &Error{Kind: ErrBadInput, Graph: unreadable.Graph, Thread: thread, Cause: err,
			Message: "the thread's run cannot be read here", Do: "Run this from the program that has the graph"}
	}
	return c.explain(err, "", thread)
}
