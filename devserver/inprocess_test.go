package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/rpc/interceptor"
	serviceerrors "go.temporal.io/server/common/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answering is a history that answers as it is told.
type answering struct {
	historyservice.UnimplementedHistoryServiceServer
	start func(context.Context, *historyservice.StartWorkflowExecutionRequest) (*historyservice.StartWorkflowExecutionResponse, error)
}

func (a *answering) StartWorkflowExecution(ctx context.Context, request *historyservice.StartWorkflowExecutionRequest) (
	*historyservice.StartWorkflowExecutionResponse, error) {
	return a.start(ctx, request)
}

// callStart calls it, with what the connection does if the call goes over the network.
func callStart(ctx context.Context, c *called, request *historyservice.StartWorkflowExecutionRequest, network error) (
	*historyservice.StartWorkflowExecutionResponse, error) {
	reply := new(historyservice.StartWorkflowExecutionResponse)
	err := c.intercept(ctx, historyservice.HistoryService_StartWorkflowExecution_FullMethodName, request, reply, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return network })
	return reply, err
}

func serving(t *testing.T, start func(context.Context, *historyservice.StartWorkflowExecutionRequest) (
	*historyservice.StartWorkflowExecutionResponse, error)) *called {
	t.Helper()
	errorsOf := interceptor.NewServiceErrorInterceptor(dynamicconfig.GetIntPropertyFn(4000), metrics.NoopMetricsHandler, log.NewNoopLogger())
	c := new(called)
	c.serve(&historyservice.HistoryService_ServiceDesc, &answering{start: start}, []grpc.UnaryServerInterceptor{errorsOf.Intercept})
	return c
}

// TestCallsInProcess: a call in process is to both sides what a call over the network is.
func TestCallsInProcess(t *testing.T) {
	t.Parallel()
	request := func() *historyservice.StartWorkflowExecutionRequest {
		return &historyservice.StartWorkflowExecutionRequest{NamespaceId: "n", StartRequest: &workflowservice.StartWorkflowExecutionRequest{
			WorkflowId: "r-1", Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"a": {Data: []byte("1")}}}}}
	}

	t.Run("neither side sees what the other does with its message", func(t *testing.T) {
		var kept *historyservice.StartWorkflowExecutionResponse
		c := serving(t, func(_ context.Context, got *historyservice.StartWorkflowExecutionRequest) (*historyservice.StartWorkflowExecutionResponse, error) {
			got.StartRequest.WorkflowId = "another"
			got.StartRequest.Memo.Fields["a"].Data[0] = '2'
			kept = &historyservice.StartWorkflowExecutionResponse{RunId: "run", Clock: nil, Started: true}
			return kept, nil
		})
		sent := request()
		reply, err := callStart(t.Context(), c, sent, nil)
		require.NoError(t, err)
		require.Equal(t, "run", reply.RunId)
		require.Equal(t, "r-1", sent.StartRequest.WorkflowId)
		require.Equal(t, "1", string(sent.StartRequest.Memo.Fields["a"].Data))
		reply.RunId = "mine"
		require.Equal(t, "run", kept.RunId)
	})

	t.Run("an error keeps its type", func(t *testing.T) {
		c := serving(t, func(context.Context, *historyservice.StartWorkflowExecutionRequest) (*historyservice.StartWorkflowExecutionResponse, error) {
			return nil, serviceerrors.NewShardOwnershipLost("owner", "here")
		})
		_, err := callStart(t.Context(), c, request(), nil)
		var lost *serviceerrors.ShardOwnershipLost
		require.ErrorAs(t, serviceerrors.FromStatus(status.Convert(err)), &lost)
		require.Equal(t, "owner", lost.OwnerHost)
	})

	t.Run("a panic is an error of the call", func(t *testing.T) {
		c := serving(t, func(context.Context, *historyservice.StartWorkflowExecutionRequest) (*historyservice.StartWorkflowExecutionResponse, error) {
			panic("in the service")
		})
		_, err := callStart(t.Context(), c, request(), nil)
		var internal *serviceerror.Internal
		require.ErrorAs(t, serviceerrors.FromStatus(status.Convert(err)), &internal)
	})

	t.Run("who waits no longer is let go, and the service is told", func(t *testing.T) {
		told := make(chan error, 1)
		c := serving(t, func(ctx context.Context, _ *historyservice.StartWorkflowExecutionRequest) (*historyservice.StartWorkflowExecutionResponse, error) {
			<-ctx.Done()
			told <- ctx.Err()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := callStart(ctx, c, request(), nil)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.ErrorIs(t, <-told, context.DeadlineExceeded)
	})

	t.Run("before the start and after the stop it goes over the network", func(t *testing.T) {
		unreachable := errors.New("nobody listens")
		stopped := serving(t, nil)
		stopped.Store(nil)
		for _, c := range []*called{new(called), stopped} {
			_, err := callStart(t.Context(), c, request(), unreachable)
			require.ErrorIs(t, err, unreachable)
		}
	})
}

// TestAnAnswerOfTheSameBytes: history answers for events with a message of another type, which is the caller's in bytes.
func TestAnAnswerOfTheSameBytes(t *testing.T) {
	t.Parallel()
	reply := new(historyservice.GetWorkflowExecutionHistoryResponse)
	require.NoError(t, copyMessage(reply, &historyservice.GetWorkflowExecutionHistoryResponseWithRaw{
		Response: &workflowservice.GetWorkflowExecutionHistoryResponse{NextPageToken: []byte("next")}}))
	require.Equal(t, "next", string(reply.Response.NextPageToken))
}
