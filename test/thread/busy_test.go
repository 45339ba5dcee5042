package thread_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// stuckSlots is how many workflow tasks the worker of these tests takes at once: the SDK's least.
const stuckSlots = 2

// stuck is a worker whose room for workflow tasks is taken, as on one with far too much to do, until it is let go.
type stuck struct {
	*rig.Server
	graph *superstep.Graph[rig.Counter]
	begun chan struct{}
	let   chan struct{}
}

func newStuck(t *testing.T) *stuck {
	s := &stuck{Server: rig.NewServer(t), begun: make(chan struct{}, 100), let: make(chan struct{})}
	g := superstep.NewStateGraph[rig.Counter]("busy")
	g.AddNode("ask", func(ctx context.Context, c rig.Counter) (rig.Counter, error) {
		_, err := superstep.Interrupt[bool](ctx, "Go on?")
		return c, err
	})
	g.AddEdge(superstep.Start, "ask")
	s.graph = g.MustCompile()
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{s.graph},
		Options: worker.Options{MaxConcurrentWorkflowTaskExecutionSize: stuckSlots, DeadlockDetectionTimeout: time.Hour},
		Register: func(r worker.Registry) {
			r.RegisterWorkflowWithOptions(func(workflow.Context) error {
				s.begun <- struct{}{}
				<-s.let // in the middle of a workflow task, which keeps its slot
				return nil
			}, workflow.RegisterOptions{Name: "stuck"})
		}})
	t.Cleanup(s.free)
	return s
}

func (s *stuck) free() {
	select {
	case <-s.let:
	default:
		close(s.let)
	}
}

// fill takes all slots.
func (s *stuck) fill() {
	s.T.Helper()
	for range stuckSlots {
		_, err := s.Temporal.ExecuteWorkflow(s.T.Context(), client.StartWorkflowOptions{ID: testserver.Queue(s.T), TaskQueue: s.Queue}, "stuck")
		require.NoError(s.T, err)
		<-s.begun
	}
}

// counted is a client of the same task queue, and the times at which it sent queries and updates.
func (s *stuck) counted() (*superstep.Client, func() int) {
	s.T.Helper()
	var mu sync.Mutex
	sent := 0
	c, err := client.Dial(client.Options{HostPort: testserver.Address(s.T), Logger: rig.NoLog{},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				switch req.(type) {
				case *workflowservice.QueryWorkflowRequest, *workflowservice.UpdateWorkflowExecutionRequest:
					mu.Lock()
					sent++
					mu.Unlock()
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			})}}})
	require.NoError(s.T, err)
	s.T.Cleanup(c.Close)
	mine, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: s.Queue})
	require.NoError(s.T, err)
	return mine, func() int {
		mu.Lock()
		defer mu.Unlock()
		return sent
	}
}

// asked is a thread that waits for an answer.
func (s *stuck) asked() (threadID, question string) {
	s.T.Helper()
	threadID = testserver.Queue(s.T)
	_, err := s.Start(s.T.Context(), thread.StartRequest{Graph: "busy", Thread: threadID, Input: json.RawMessage(`{}`)})
	require.NoError(s.T, err)
	v, err := s.Wait(s.T.Context(), threadID)
	require.NoError(s.T, err)
	require.Len(s.T, v.Questions, 1)
	return threadID, v.Questions[0].ID
}

// TestBusyIsNotAbsent: a call that a worker has to answer fails as busy at the end of the caller's time, and says nothing of
// starting a worker where there is none. What the history tells is told meanwhile.
func TestBusyIsNotAbsent(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	threadID, question := s.asked()
	s.fill()
	for name, call := range map[string]func(context.Context) error{
		"a start": func(ctx context.Context) error {
			_, err := s.Start(ctx, thread.StartRequest{Graph: "busy", Input: json.RawMessage(`{}`)})
			return err
		},
		"an answer": func(ctx context.Context) error {
			_, err := s.Resume(ctx, thread.ResumeRequest{Thread: threadID, Question: question, Value: json.RawMessage(`true`)})
			return err
		},
		"a look at a graph": func(ctx context.Context) error {
			_, err := s.GraphSpec(ctx, "busy")
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, thread.ErrBusy, name)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.NotErrorIs(t, err, thread.ErrNoWorker, name)
		require.Contains(t, err.Error(), "are busy", name)
		require.NotContains(t, err.Error(), "superstep worker", name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.GraphSpec(ctx, "busy")
	require.ErrorIs(t, err, context.Canceled)

	view, err := s.Show(t.Context(), threadID)
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, view.Status)
	require.Contains(t, view.Problem, "are busy")
	state, err := s.State(t.Context(), thread.StateRequest{Thread: threadID})
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, state.Status)
}

// TestABusyWorkerIsWaitedFor: for longer than one call of the server takes, which is repeated.
func TestABusyWorkerIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*superstep.Client, string, string) error{
		"a start": func(c *superstep.Client, _, _ string) error {
			_, err := c.Start(t.Context(), thread.StartRequest{Graph: "busy", Input: json.RawMessage(`{}`)})
			return err
		},
		"an answer": func(c *superstep.Client, threadID, question string) error {
			_, err := c.Resume(t.Context(), thread.ResumeRequest{Thread: threadID, Question: question, Value: json.RawMessage(`true`)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStuck(t)
			threadID, question := s.asked()
			s.fill()
			c, sent := s.counted()
			done := make(chan error, 1)
			go func() { done <- call(c, threadID, question) }()
			require.Eventually(t, func() bool { return sent() >= 2 }, 2*time.Minute, 50*time.Millisecond)
			select {
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			default:
			}
			s.free()
			require.NoError(t, <-done)
		})
	}
}

// TestNoWorkerIsSaidAtOnce where none was there of late.
func TestNoWorkerIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := s.Start(ctx, thread.StartRequest{Graph: "busy", Input: json.RawMessage(`{}`)})
	require.ErrorIs(t, err, thread.ErrNoWorker)
	require.NotErrorIs(t, err, thread.ErrBusy)
	require.Contains(t, err.Error(), "superstep worker")
}
