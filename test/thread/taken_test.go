package thread_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestAMessageOfNobody: whoever sends a message while no worker is there is not told that it is lost, since the next worker may take it;
// what to do instead is said of an answer alone where it is true of answers alone.
func TestAMessageOfNobody(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	stop := work.Work(g)
	var gone atomic.Bool
	s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if described, ok := reply.(*workflowservice.DescribeTaskQueueResponse); ok && gone.Load() {
			described.Pollers = nil // the server remembers them for a while
		}
		return err
	}))
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
	require.NoError(t, err)
	ask := func() (threadID, question string) {
		threadID = testserver.Queue(t)
		th := g.Thread(c, threadID)
		require.NoError(t, th.Start(t.Context(), rig.Wrote("ask")))
		r, err := th.Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, r.Questions, 1)
		return threadID, r.Questions[0].ID
	}
	answered, question := ask()
	drained, _ := ask()
	stop()
	gone.Store(true)

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	answer := thread.ResumeRequest{Thread: answered, Question: question, Value: json.RawMessage(`true`), ID: "answer-1"}
	_, err = c.Resume(ctx, answer)
	require.ErrorIs(t, err, thread.ErrNoWorker)
	assert.NotContains(t, err.Error(), "not stored")
	assert.ErrorContains(t, err, "a worker may take it yet")
	assert.ErrorContains(t, err, "under the same id (--id answer-1) an answer counts once, and resume --signal stores it without a worker")
	assert.ErrorContains(t, err, "superstep show "+answered)
	_, err = c.Drain(ctx, thread.DrainRequest{Thread: drained, Reason: "the night begins"})
	require.ErrorIs(t, err, thread.ErrNoWorker)
	assert.ErrorContains(t, err, "a worker may take it yet")
	assert.ErrorContains(t, err, "superstep show "+drained)
	assert.NotContains(t, err.Error(), "--signal")
	assert.NotContains(t, err.Error(), "--id")

	gone.Store(false)
	work.Work(g)
	_, err = c.Resume(t.Context(), answer)
	require.NoError(t, err)
	r, err := g.Thread(c, answered).Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"ask", "turn true"}, r.Output.Log.Get())
	again, err := c.Resume(t.Context(), answer)
	require.NoError(t, err)
	assert.True(t, again.Repeated)
}
