package acked_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"superstep.dev/internal/acked"
)

// server is a connection whose calls are answered by reply, below what watches it.
type server struct {
	service workflowservice.WorkflowServiceClient
	err     error
	eager   bool
}

func newServer(t *testing.T) *server {
	s := &server{eager: true}
	o := acked.Watched(client.Options{})
	conn, err := grpc.NewClient("passthrough:///nobody", append(o.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			if started, ok := reply.(*workflowservice.StartWorkflowExecutionResponse); ok && s.eager {
				started.EagerWorkflowTask = &workflowservice.PollWorkflowTaskQueueResponse{TaskToken: []byte(t.Name()), StartedEventId: 3,
					History: &historypb.History{Events: []*historypb.HistoryEvent{{EventId: 1}}}}
			}
			return s.err
		}))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s.service = workflowservice.NewWorkflowServiceClient(conn)
	return s
}

func (s *server) start(t *testing.T) *acked.Watch {
	t.Helper()
	w := acked.NewWatch()
	_, err := s.service.StartWorkflowExecution(w.In(t.Context()), &workflowservice.StartWorkflowExecutionRequest{})
	require.NoError(t, err)
	return w
}

func (s *server) complete(t *testing.T, kinds ...enumspb.CommandType) {
	t.Helper()
	req := &workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte(t.Name())}
	for _, kind := range kinds {
		req.Commands = append(req.Commands, &commandpb.Command{CommandType: kind, Attributes: &commandpb.Command_CompleteWorkflowExecutionCommandAttributes{
			CompleteWorkflowExecutionCommandAttributes: &commandpb.CompleteWorkflowExecutionCommandAttributes{
				Result: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("result")}}}}}})
	}
	_, err := s.service.RespondWorkflowTaskCompleted(t.Context(), req)
	require.ErrorIs(t, err, s.err)
}

const (
	upsert = enumspb.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
	ends   = enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION
)

func TestAnAcknowledgedEndIsKnown(t *testing.T) {
	s := newServer(t)
	w := s.start(t)
	s.err = errors.New("the server is away") // the worker's client repeats it
	s.complete(t, upsert, ends)
	s.err = nil
	s.complete(t, upsert, ends)
	end, eager := w.Wait(t.Context(), time.Minute)
	require.NotNil(t, end)
	assert.True(t, eager)
	assert.Equal(t, "result", string(end.Result.GetPayloads()[0].GetData()))
	assert.Equal(t, int64(6), end.Events)
}

func TestNothingElseIsAnEnd(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *server){
		"it goes on":     func(t *testing.T, s *server) { s.complete(t, upsert) },
		"nothing to do":  func(t *testing.T, s *server) { s.complete(t) },
		"its time is up": func(t *testing.T, s *server) { s.err = serviceerror.NewNotFound("no such task"); s.complete(t, ends) },
		"it fails": func(t *testing.T, s *server) {
			_, err := s.service.RespondWorkflowTaskFailed(t.Context(), &workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: []byte(t.Name())})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			w := s.start(t)
			happens(t, s)
			end, eager := w.Wait(t.Context(), time.Minute)
			assert.Nil(t, end)
			assert.True(t, eager)
			s.err = nil
			s.complete(t, ends) // too late
			end, _ = w.Wait(t.Context(), time.Minute)
			assert.Nil(t, end)
		})
	}
	t.Run("another process has it", func(t *testing.T) {
		s := newServer(t)
		s.eager = false
		end, eager := s.start(t).Wait(t.Context(), time.Minute)
		assert.Nil(t, end)
		assert.False(t, eager)
	})
	t.Run("nothing is heard", func(t *testing.T) {
		end, _ := newServer(t).start(t).Wait(t.Context(), time.Millisecond)
		assert.Nil(t, end)
	})
}

// TestAWorkerServesItsOwnClient while it runs, and no other one.
func TestAWorkerServesItsOwnClient(t *testing.T) {
	mine, other := new(dialed), new(dialed)
	first, second := acked.Serve(mine, "q"), acked.Serve(mine, "q")
	assert.True(t, acked.Served(mine, "q"))
	assert.False(t, acked.Served(mine, "another"))
	assert.False(t, acked.Served(other, "q"))
	first()
	first()
	assert.True(t, acked.Served(mine, "q"))
	second()
	assert.False(t, acked.Served(mine, "q"))
}

type dialed struct {
	client.Client
	_ byte // two of them are not one
}
