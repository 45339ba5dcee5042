package lateness

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// TestGauge: the latest counts, and less with each second, until one that is as late comes.
func TestGauge(t *testing.T) {
	var g gauge
	at := time.Now()
	after := func(d time.Duration) time.Duration { return g.now(at.Add(d)) }
	assert.Zero(t, after(0))
	g.note(800*time.Millisecond, at)
	g.note(10*time.Millisecond, at)
	assert.Equal(t, 800*time.Millisecond, after(0))
	assert.Equal(t, 800*time.Millisecond, after(-time.Second), "a clock that goes back")
	assert.Equal(t, 400*time.Millisecond, after(time.Second))
	assert.Equal(t, 200*time.Millisecond, after(2*time.Second))
	g.note(200*time.Millisecond, at.Add(2*time.Second))
	assert.Equal(t, 100*time.Millisecond, after(3*time.Second))
	assert.Zero(t, after(time.Hour))
}

// TestOptions: of a task that a worker is given, the time counts that the server had it.
func TestOptions(t *testing.T) {
	scheduled := time.Now()
	var task *workflowservice.PollWorkflowTaskQueueResponse
	o := Options(client.Options{})
	conn, err := grpc.NewClient("passthrough:///nobody", append(o.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			to := reply.(*workflowservice.PollWorkflowTaskQueueResponse)
			to.ScheduledTime, to.StartedTime = task.GetScheduledTime(), task.GetStartedTime()
			return nil
		}))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	poll := func(reply *workflowservice.PollWorkflowTaskQueueResponse) time.Duration {
		task = reply
		_, err := workflowservice.NewWorkflowServiceClient(conn).PollWorkflowTaskQueue(t.Context(), &workflowservice.PollWorkflowTaskQueueRequest{})
		require.NoError(t, err)
		return Now()
	}
	assert.Zero(t, poll(&workflowservice.PollWorkflowTaskQueueResponse{}), "nothing to do")
	late := poll(&workflowservice.PollWorkflowTaskQueueResponse{ScheduledTime: timestamppb.New(scheduled), StartedTime: timestamppb.New(scheduled.Add(time.Hour))})
	assert.GreaterOrEqual(t, late, 30*time.Minute)
}
