package rig

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Server is a task queue whose worker can be stopped and started again.
type Server struct {
	*superstep.Client
	T        *testing.T
	Temporal client.Client
	Queue    string
	// Converter reads histories; nil is Temporal's default.
	Converter converter.DataConverter
}

// NewServer connects to the server that all tests share, with a task queue of the test's own.
func NewServer(t *testing.T) *Server {
	t.Helper()
	return NewServerBy(t)
}

// NewServerThatContinues is a server whose runs are continued as new ones at these bounds.
func NewServerThatContinues(t *testing.T, at protocol.ContinueAt) *Server {
	t.Helper()
	return NewServerBy(t, ContinuedAt(at))
}

// ContinuedAt makes the runs of graphs that are started over a connection be continued as new ones at these bounds.
func ContinuedAt(at protocol.ContinueAt) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		start, _ := req.(*workflowservice.StartWorkflowExecutionRequest)
		if both, ok := req.(*workflowservice.ExecuteMultiOperationRequest); ok {
			start = both.GetOperations()[0].GetStartWorkflow()
		}
		if start.GetWorkflowType().GetName() == protocol.GraphWorkflow {
			var in protocol.GraphInput
			if err := converter.GetDefaultDataConverter().FromPayloads(start.GetInput(), &in); err != nil {
				return err
			}
			in.ContinueAt = &at
			var err error
			if start.Input, err = converter.GetDefaultDataConverter().ToPayloads(in); err != nil {
				return err
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}

// NewServerBy is a server over a connection with these options.
func NewServerBy(t *testing.T, opts ...grpc.DialOption) *Server {
	t.Helper()
	c, err := client.Dial(superstep.Watched(client.Options{HostPort: testserver.Address(t), Logger: NoLog{}, ConnectionOptions: client.ConnectionOptions{DialOptions: opts}}))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s := &Server{T: t, Temporal: c, Queue: testserver.Queue(t)}
	s.Client, err = superstep.NewClient(c, superstep.ClientConfig{TaskQueue: s.Queue})
	require.NoError(t, err)
	return s
}

// Work runs a worker until stop is called, or the test ends.
func (s *Server) Work(graphs ...superstep.Runnable) (stop func()) {
	s.T.Helper()
	return s.WorkWith(superstep.WorkerConfig{Graphs: graphs})
}

// WorkWith is Work with settings.
func (s *Server) WorkWith(cfg superstep.WorkerConfig) (stop func()) {
	s.T.Helper()
	cfg.TaskQueue = s.Queue
	return RunWorker(s.T, s.Temporal, cfg)
}

// Steady is after how much silence a worker is taken for lost where a test says nothing else: one that is stopped takes its leave, so silence
// means that the machine is busy, and tests count how often a node ran. A task that is to end hears so within a third of it, so it is no longer.
const Steady = 10 * time.Second

// RunWorker runs a worker until stop is called, or the test ends. It returns once the server knows the worker.
func RunWorker(t *testing.T, server client.Client, cfg superstep.WorkerConfig) (stop func()) {
	t.Helper()
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg.OnReady = func() { close(ready) }
	cfg.Options.WorkerStopTimeout = 5 * time.Second
	cfg.LostAfter = cmp.Or(cfg.LostAfter, Steady)
	w, err := superstep.NewWorker(server, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	<-ready
	return stop
}

// Activities counts the activities of a type that a thread's newest run scheduled, local ones too.
func (s *Server) Activities(thread, kind string) int {
	s.T.Helper()
	reads := s.Converter
	if reads == nil {
		reads = converter.GetDefaultDataConverter()
	}
	return s.count(thread, func(e *historypb.HistoryEvent) bool {
		var local struct{ ActivityType string } // as the SDK's marker names it
		if marker := e.GetMarkerRecordedEventAttributes(); marker.GetMarkerName() == "LocalActivity" {
			require.NoError(s.T, reads.FromPayloads(marker.GetDetails()["data"], &local))
		}
		return local.ActivityType == kind || e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == kind
	})
}

// Events counts the events of a type in the history of a thread's newest run.
func (s *Server) Events(thread string, kind enumspb.EventType) int {
	s.T.Helper()
	return s.count(thread, func(e *historypb.HistoryEvent) bool { return e.GetEventType() == kind })
}

func (s *Server) count(thread string, counts func(*historypb.HistoryEvent) bool) (n int) {
	s.T.Helper()
	events := s.Temporal.GetWorkflowHistory(s.T.Context(), thread, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.T, err)
		if counts(e) {
			n++
		}
	}
	return n
}

// Continued counts the runs of a thread that were continued as new ones.
func (s *Server) Continued(thread string) int {
	s.T.Helper()
	n := 0
	described, err := s.Temporal.DescribeWorkflowExecution(s.T.Context(), thread, "")
	require.NoError(s.T, err)
	for id := described.GetWorkflowExecutionInfo().GetFirstRunId(); id != ""; n++ {
		events := s.Temporal.GetWorkflowHistory(s.T.Context(), thread, id, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		if !events.HasNext() {
			break
		}
		e, err := events.Next()
		require.NoError(s.T, err)
		if id = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); id == "" {
			break
		}
	}
	return n
}

// AwaitListed waits until a thread is in the list of those with a status: the server's index is a moment behind.
func AwaitListed(t *testing.T, c *superstep.Client, threadID string, status thread.Status) (found thread.View) {
	t.Helper()
	require.Eventually(t, func() bool {
		views, err := c.List(t.Context(), thread.ListQuery{Status: status, Limit: 1000})
		require.NoError(t, err)
		for _, v := range views {
			if v.Thread == threadID {
				found = v
				return true
			}
		}
		return false
	}, 2*time.Minute, 50*time.Millisecond, "thread %s is not listed as %s", threadID, status)
	return found
}

// NoLog drops what Temporal's SDK logs.
type NoLog struct{}

var _ sdklog.Logger = NoLog{}

// Debug, Info, Warn and Error implement log.Logger.
func (NoLog) Debug(string, ...any) {}
func (NoLog) Info(string, ...any)  {}
func (NoLog) Warn(string, ...any)  {}
func (NoLog) Error(string, ...any) {}
