// Package acked tells a client that a run has ended when a worker of the same process has ended it: the server's reply to the
// worker is the proof that the end is stored, so nobody has to ask for it. It watches the calls of a connection that a client
// and a worker share. Only an end that the server has acknowledged counts; of anything else it says nothing, and its caller asks.
package acked

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/nexttask"
)

// End is how a run has ended: it has completed, in its first workflow task.
type End struct {
	// Result is encoded, as the run's last event has it.
	Result *commonpb.Payloads
	// Began and At are when the run began and when its only workflow task did, on the server's clock.
	Began, At time.Time
	// Events and Bytes are the size of its history.
	Events, Bytes int64
}

// Watch waits for the end of one run. Make it with [NewWatch].
type Watch struct {
	done chan struct{}
	once sync.Once
	end  *End
	// Set by the reply to the start.
	token string
	first *workflowservice.PollWorkflowTaskQueueResponse
}

// NewWatch returns a watch for the run that is started with its context: see In.
func NewWatch() *Watch { return &Watch{done: make(chan struct{})} }

type watchKey struct{}

// In is a context to start the run with.
func (w *Watch) In(ctx context.Context) context.Context { return context.WithValue(ctx, watchKey{}, w) }

// Wait returns how the run has ended, and nil where that is not known: its first workflow task went to another process, did not end
// it, failed, or took longer than most. Eager says that the task came to this process.
func (w *Watch) Wait(ctx context.Context, most time.Duration) (end *End, eager bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-timer.C:
	}
	w.tell(nil)
	return w.end, w.first != nil
}

// tell says how the run has ended; what is said first counts.
func (w *Watch) tell(end *End) {
	w.once.Do(func() {
		w.end = end
		underWay.Delete(w.token)
		close(w.done)
	})
	<-w.done
}

// underWay are the watches of runs whose first workflow task is in this process, by the task's token.
var underWay sync.Map

type probeKey struct{}

// Probe is a context with which a call tells whether its connection is watched.
func Probe(ctx context.Context) (_ context.Context, watched *atomic.Bool) {
	watched = &atomic.Bool{}
	return context.WithValue(ctx, probeKey{}, watched), watched
}

// Watched completes the options of a Temporal client whose connection is watched.
func Watched(o client.Options) client.Options {
	o.ConnectionOptions.DialOptions = append(slices.Clone(o.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(intercept))
	return o
}

// intercept watches the calls of a connection.
func intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if watched, ok := ctx.Value(probeKey{}).(*atomic.Bool); ok {
		watched.Store(true)
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	switch q := req.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		if w, ok := ctx.Value(watchKey{}).(*Watch); ok && err == nil {
			w.started(reply.(*workflowservice.StartWorkflowExecutionResponse))
		}
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		responded(q.GetTaskToken(), q, err)
	case *workflowservice.RespondWorkflowTaskFailedRequest:
		responded(q.GetTaskToken(), nil, err)
	}
	return err
}

// started notes the task that the server has handed out with its reply to the start, if it has.
func (w *Watch) started(reply *workflowservice.StartWorkflowExecutionResponse) {
	task := reply.GetEagerWorkflowTask()
	if task == nil {
		w.tell(nil)
		return
	}
	w.token, w.first = string(task.GetTaskToken()), task
	underWay.Store(w.token, w)
}

// responded tells of a task that a worker has completed, or with nil failed to. A call that may be repeated has said nothing yet.
func responded(token []byte, completed *workflowservice.RespondWorkflowTaskCompletedRequest, err error) {
	of, ok := underWay.Load(string(token))
	if !ok {
		return
	}
	w := of.(*Watch)
	switch {
	case err == nil:
		w.tell(w.endIn(completed))
	case nexttask.IsOver(err):
		w.tell(nil)
	}
}

// endIn is the end that a completed task has brought, nil for none.
func (w *Watch) endIn(completed *workflowservice.RespondWorkflowTaskCompletedRequest) *End {
	commands := completed.GetCommands()
	if len(commands) == 0 {
		return nil
	}
	last := commands[len(commands)-1]
	events := w.first.GetHistory().GetEvents()
	if last.GetCommandType() != enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION || len(events) == 0 {
		return nil
	}
	end := &End{Result: last.GetCompleteWorkflowExecutionCommandAttributes().GetResult(),
		Began: events[0].GetEventTime().AsTime(), At: events[len(events)-1].GetEventTime().AsTime(),
		// An event for each command, behind the one that the task is completed.
		Events: w.first.GetStartedEventId() + 1 + int64(len(commands)), Bytes: int64(proto.Size(w.first.GetHistory()))}
	for _, c := range commands {
		end.Bytes += int64(proto.Size(c))
	}
	return end
}

// serving counts the workers of this process by the Temporal client that they share with others, and their task queue.
var serving = struct {
	mu sync.Mutex
	by map[at]int
}{by: map[at]int{}}

type at struct {
	client client.Client
	queue  string
}

// Serve notes that a worker of this process polls a task queue by a client whose connection is watched, until stop is called.
func Serve(c client.Client, queue string) (stop func()) {
	if !reflect.TypeOf(c).Comparable() {
		return func() {}
	}
	add := func(n int) {
		serving.mu.Lock()
		defer serving.mu.Unlock()
		if serving.by[at{c, queue}] += n; serving.by[at{c, queue}] == 0 {
			delete(serving.by, at{c, queue})
		}
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}

// Served reports whether a worker polls a task queue by that very client.
func Served(c client.Client, queue string) bool {
	if !reflect.TypeOf(c).Comparable() {
		return false
	}
	serving.mu.Lock()
	defer serving.mu.Unlock()
	return serving.by[at{c, queue}] > 0
}
