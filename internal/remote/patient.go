package remote

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"superstep.dev/thread"
)

// patiently repeats a look at a server that had no time for it, as long as the caller waits: a call of Temporal's client ends after
// 10 s, and a server with far too much to do takes longer. A server that is in trouble is told of, with the thread that it is about.
// What is looked up may be a start, where the caller can tell its own from others.
func patiently[R any](ctx context.Context, c *server, threadID string, look func() (R, error)) (R, error) {
	for {
		reply, err := look()
		var busy *serviceerror.ResourceExhausted
		if err == nil || ctx.Err() != nil || !isSilence(err) && !errors.As(err, &busy) {
			return reply, err
		}
		if trouble := c.serverTrouble("", threadID); trouble != nil {
			return reply, trouble
		}
		select {
		case <-ctx.Done():
		case <-time.After(askPause):
		}
	}
}

// service are the calls of a server that look at histories, of the kind that Temporal's client itself never repeats.
type service struct {
	workflowservice.WorkflowServiceClient
	server *server
}

// GetWorkflowExecutionHistory is repeated: see [patiently].
func (s service) GetWorkflowExecutionHistory(ctx context.Context, in *workflowservice.GetWorkflowExecutionHistoryRequest,
	opts ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return patiently(ctx, s.server, in.GetExecution().GetWorkflowId(), func() (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
		return s.WorkflowServiceClient.GetWorkflowExecutionHistory(ctx, in, opts...)
	})
}

// GetWorkflowExecutionHistoryReverse is repeated: see [patiently].
func (s service) GetWorkflowExecutionHistoryReverse(ctx context.Context, in *workflowservice.GetWorkflowExecutionHistoryReverseRequest,
	opts ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	return patiently(ctx, s.server, in.GetExecution().GetWorkflowId(), func() (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
		return s.WorkflowServiceClient.GetWorkflowExecutionHistoryReverse(ctx, in, opts...)
	})
}

// outcome waits for what an update does that was accepted, and so is stored: as long as the caller does. One call of the
// server's ends before that.
func (c *server) outcome(ctx context.Context, threadID string, handle client.WorkflowUpdateHandle, reply any) error {
	_, err := patiently(ctx, c, threadID, func() (struct{}, error) { return struct{}{}, handle.Get(ctx, reply) })
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) && failed.Type() == abortedType {
		return errAborted
	}
	return err
}

// notBegun says why nobody has begun a run that was started, as err says of a message that was sent along.
func notBegun(err error, last *lastRun) error {
	var why *thread.Error
	if !unanswered(err) || !errors.As(err, &why) {
		return err
	}
	e := *why
	e.Graph, e.Do, e.Message = last.graph, "Start one", "no worker answers on task queue "+strconv.Quote(last.queue)
	if errors.Is(err, thread.ErrBusy) {
		e.Do, e.Message = doWhenBusy, "no worker on task queue "+strconv.Quote(last.queue)+" has begun the run yet: the workers of the last minute are busy, or gone"
	}
	e.Message += "; the run is stored, and one that comes goes on with it"
	return &e
}
