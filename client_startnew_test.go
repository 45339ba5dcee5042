package superstep_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"superstep.dev"
	"superstep.dev/internal/testserver"
)

// starts is an interceptor that counts the runs which a Temporal client starts.
type starts struct {
	interceptor.ClientInterceptorBase
	interceptor.ClientOutboundInterceptorBase
	seen atomic.Int64
}

func (s *starts) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	s.ClientOutboundInterceptorBase.Next = next
	return s
}

func (s *starts) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if in.Options.ID == "started-"+in.Options.TaskQueue {
		s.seen.Add(1)
	}
	return s.Next.ExecuteWorkflow(ctx, in)
}

// TestANewThreadIsStartedByTheTemporalClient: its interceptors see the start, and the worker on the same client has the run
// without the way through the server's queue. A client that names itself says so in the history, and goes that way.
func TestANewThreadIsStartedByTheTemporalClient(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[counter]("starting")
	b.AddNode("a", appending("a"))
	b.AddEdge(superstep.Start, "a")
	g := b.MustCompile()
	for identity, eager := range map[string]bool{"": true, "somebody": false} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			seen := &starts{}
			c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: noLog{}, Interceptors: []interceptor.ClientInterceptor{seen}})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			s := &server{t: t, temporal: c, queue: testserver.Queue(t)}
			s.Client, err = superstep.NewClient(c, superstep.ClientConfig{TaskQueue: s.queue, Identity: identity})
			require.NoError(t, err)
			s.work(g)
			thread := "started-" + s.queue
			started, err := s.Start(t.Context(), superstep.StartRequest{Graph: "starting", Thread: thread, Input: []byte(`{}`)})
			require.NoError(t, err)
			_, err = s.Wait(t.Context(), thread)
			require.NoError(t, err)
			first := s.firstEvent(thread, started.RunID)
			assert.Equal(t, eager, first.GetEagerExecutionAccepted())
			if identity != "" {
				assert.Equal(t, identity, first.GetIdentity())
			}
			assert.Equal(t, eager, seen.seen.Load() == 1)
			view, err := s.Show(t.Context(), thread)
			require.NoError(t, err)
			assert.Equal(t, superstep.StatusFinished, view.Status)

			// Whoever wants a new thread goes on with no other.
			_, err = s.Start(t.Context(), superstep.StartRequest{Graph: "starting", Thread: thread, NewThread: true, Input: []byte(`{}`)})
			require.ErrorIs(t, err, superstep.ErrBadInput)
			require.ErrorContains(t, err, "already")
			made, err := s.Start(t.Context(), superstep.StartRequest{Graph: "starting", Input: []byte(`{}`)})
			require.NoError(t, err)
			require.Regexp(t, `^starting-[a-z2-7]{26}$`, made.Thread)

			// The thread's next run needs a request id of its own, so the Temporal client does not start it.
			_, err = s.Start(t.Context(), superstep.StartRequest{Graph: "starting", Thread: thread, Input: []byte(`{}`)})
			require.NoError(t, err)
			assert.False(t, s.firstEvent(thread, "").GetEagerExecutionAccepted())
		})
	}
}

// firstEvent is how a run was started.
func (s *server) firstEvent(thread, runID string) *historypb.WorkflowExecutionStartedEventAttributes {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.t.Context(), thread, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	require.NoError(s.t, err)
	return first.GetWorkflowExecutionStartedEventAttributes()
}
