package nexttask_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"superstep.dev/internal/nexttask"
)

// TestWant: the next completed task of the thread that is wanted asks for one that follows, and so does each repetition of its call,
// until the server has it or knows its task no more.
func TestWant(t *testing.T) {
	var asked, replied = false, error(nil)
	o := nexttask.Options(client.Options{})
	conn, err := grpc.NewClient("passthrough:///nobody", append(o.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(func(_ context.Context, _ string, req, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			asked = req.(*workflowservice.RespondWorkflowTaskCompletedRequest).GetForceCreateNewWorkflowTask()
			return replied
		}))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	service := workflowservice.NewWorkflowServiceClient(conn)
	respond := func(r *workflowservice.RespondWorkflowTaskCompletedRequest, reply error) bool {
		replied = reply
		_, err := service.RespondWorkflowTaskCompleted(t.Context(), r)
		assert.ErrorIs(t, err, reply)
		return asked
	}
	completes := func(namespace, id string, reply error) bool {
		return respond(&workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: namespace, ResourceId: "workflow:" + id}, reply)
	}
	for name, last := range map[string]error{"the server has it": nil, "the server knows it no more": serviceerror.NewNotFound("gone")} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, completes("n", "a", nil), "nobody wanted it")
			nexttask.Want("n", "a")
			assert.False(t, completes("n", "b", nil), "of another thread")
			assert.False(t, completes("m", "a", nil), "of another namespace")
			assert.True(t, completes("n", "a", errors.New("not reached")))
			assert.True(t, completes("n", "a", last))
			assert.False(t, completes("n", "a", nil), "once")
		})
	}
	assert.True(t, respond(&workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "n", ResourceId: "workflow:a", ForceCreateNewWorkflowTask: true}, nil),
		"the SDK asks while a local activity takes long: without the next task the run would hear of its end never")
}
