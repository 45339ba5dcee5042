package thread_test

import (
	"context"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// late is a connection on which the reply to the first calls of a method comes after their time is over: they are done.
type late struct {
	method string
	left   atomic.Int64
	lost   atomic.Bool
}

func (l *late) call(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if path.Base(method) != l.method || l.left.Add(-1) < 0 {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if err := invoke(ctx, method, req, nothing(reply), cc, opts...); err != nil {
		return err
	}
	l.lost.Store(true)
	return status.Error(codes.DeadlineExceeded, context.DeadlineExceeded.Error())
}

// TestASlowServerIsWaitedFor: a call of which nothing is heard in its time, as under load, is no error while the caller waits, and
// what it has done is not done twice.
func TestASlowServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	for _, method := range []string{"DescribeTaskQueue", "QueryWorkflow", "StartWorkflowExecution", "DescribeWorkflowExecution",
		"UpdateWorkflowExecution", "GetWorkflowExecutionHistory", "ExecuteMultiOperation", "DescribeNamespace"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			slow := &late{method: method}
			s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(slow.call))
			c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
			require.NoError(t, err)
			th := g.Thread(c, s.Queue)
			said := func(want ...string) func(superstep.Result[rig.Counter], error) {
				return func(r superstep.Result[rig.Counter], err error) {
					t.Helper()
					slow.left.Store(1)
					require.NoError(t, err)
					assert.Equal(t, want, r.Output.Log.Get())
				}
			}
			slow.left.Store(1)
			require.NoError(t, th.Start(t.Context(), rig.Wrote("ask")))
			said("ask")(th.Wait(t.Context()))
			said("ask", "turn true")(th.Resume(t.Context(), true))
			said("ask", "turn true", "more")(th.Invoke(t.Context(), rig.Wrote("more")))
			said("ask", "turn true", "more", "and more")(th.Invoke(t.Context(), rig.Wrote("and more")))
			said("hello")(g.Thread(c, s.Queue+"-new").Invoke(t.Context(), rig.Wrote("hello")))
			assert.True(t, slow.lost.Load(), "nothing was late")
		})
	}
}

// TestAServerThatHasNoTime for the start of a run behind one that is over is asked again.
func TestAServerThatHasNoTime(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.ResourceExhausted} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			var left atomic.Int64
			s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
				invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) error {
				if path.Base(method) == "StartWorkflowExecution" && left.Add(-1) >= 0 {
					return status.Error(code, "not now")
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			}))
			c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
			require.NoError(t, err)
			th := g.Thread(c, s.Queue)
			_, err = th.Invoke(t.Context(), rig.Wrote("hello"))
			require.NoError(t, err)
			left.Store(2)
			r, err := th.Invoke(t.Context(), rig.Wrote("more"))
			require.NoError(t, err)
			assert.Equal(t, []string{"hello", "more"}, r.Output.Log.Get())
			assert.Negative(t, left.Load(), "it was not asked")
		})
	}
}

// TestAnInvokeOfNobody: a caller whose workers have gone is told so, also where its client had heard of one a moment ago. The run is
// stored, and goes on with the next worker.
func TestAnInvokeOfNobody(t *testing.T) {
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
	_, err = g.Thread(c, work.Queue+"-first").Invoke(t.Context(), rig.Wrote("hello"))
	require.NoError(t, err)
	stop()
	gone.Store(true)

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	th := g.Thread(c, work.Queue)
	_, err = th.Invoke(ctx, rig.Wrote("hello"))
	require.ErrorIs(t, err, thread.ErrNoWorker)
	require.NotErrorIs(t, err, thread.ErrBusy)
	require.ErrorContains(t, err, "the run is stored")
	over := g.Thread(c, work.Queue+"-first")
	_, err = over.Invoke(ctx, rig.Wrote("more"))
	require.ErrorIs(t, err, thread.ErrNoWorker)
	require.ErrorContains(t, err, "the run is stored")
	work.Work(g)
	again, err := over.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"hello", "more"}, again.Output.Log.Get())
	r, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, r.Output.Log.Get())
}

// TestABusyWorkerIsWaitedForByAnInvoke for longer than one call of the server takes. A caller whose time is over is told that workers are
// busy, and that the run is stored.
func TestABusyWorkerIsWaitedForByAnInvoke(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	c, _ := s.counted()
	begin := func(ctx context.Context, id string) error {
		_, err := s.graph.Thread(c, id).Invoke(ctx, rig.Counter{})
		return err
	}
	require.NoError(t, begin(t.Context(), s.Queue+"-first"))
	s.fill()
	done := make(chan error, 1)
	go func() { done <- begin(t.Context(), s.Queue) }()
	short, cancel := context.WithTimeout(t.Context(), 12*time.Second) // longer than one call waits
	defer cancel()
	err := begin(short, s.Queue+"-short")
	require.ErrorIs(t, err, thread.ErrBusy)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the run is stored")
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	s.free()
	require.NoError(t, <-done)
	r, err := s.graph.Thread(c, s.Queue+"-short").Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, r.Status)
}

// plodding is a reducer that takes longer than a workflow task may. Nothing is waited for: that time is what is tested.
type plodding struct{}

func (plodding) Name() string { return "test.plodding/v1" }

func (plodding) Reduce(current, update int) (int, error) {
	time.Sleep(protocol.WorkflowTaskTimeout + time.Second)
	return current + update, nil
}

// TestAWorkflowTaskThatTakesLongerThanItsTime: the server gives it to a worker anew, with more time behind a few attempts, so that the run
// ends. A large state on a slow machine is what takes as long.
func TestAWorkflowTaskThatTakesLongerThanItsTime(t *testing.T) {
	t.Parallel()
	type state struct {
		Sum superstep.Reduced[int, plodding] `json:"sum"`
	}
	b := superstep.NewStateGraph[state]("plodding")
	b.AddNode("add", func(_ context.Context, s state) (state, error) {
		s.Sum.Write(2)
		return s, nil
	})
	b.AddEdge(superstep.Start, "add")
	g := b.MustCompile()
	work := rig.NewServer(t)
	work.Work(g)
	th := g.Thread(work.Client, work.Queue)
	r, err := th.Invoke(t.Context(), state{})
	require.NoError(t, err)
	assert.Equal(t, 2, r.Output.Sum.Get())
	assert.Positive(t, work.Events(th.ID(), enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT), "no workflow task took longer than its time")
}
