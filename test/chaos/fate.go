package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The points of a worker's life right before and right after which it can die.
const (
	pointRecord   = "record"   // a heartbeat with what a node did so far: intents, receipts, supersteps
	pointResult   = "result"   // the end of an activity
	pointDecision = "decision" // the end of a workflow task
	pointOrder    = "order"    // calls to payments
	pointRefund   = "refund"
	pointLookup   = "lookup"
	pointNotify   = "notify"
)

// points are all of them; those where things can go wrong most often come twice.
var points = []string{
	pointRecord, pointRecord, pointResult, pointResult, pointDecision, pointOrder, pointRefund, pointRefund, pointLookup, pointNotify,
}

// fate is what happens to one worker. It hangs for good where it shall die, so that whoever is told kills it there.
type fate struct {
	moment string // "before record", "after refund", …; "" is none
	left   atomic.Int64
	// holding makes calls to payments wait for the thaw.
	holding bool
	thaw    chan struct{}

	mu      sync.Mutex
	threads map[string]string // of the activities in hand, by task token
}

func newFate(moment string, count int64, holding bool) *fate {
	f := &fate{moment: moment, holding: holding, thaw: make(chan struct{}), threads: map[string]string{}}
	f.left.Store(count)
	if holding {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGCONT)
		go func() {
			<-signals
			close(f.thaw)
		}()
	}
	return f
}

// reach is called at every moment.
func (f *fate) reach(moment string) {
	if moment != f.moment || f.left.Add(-1) != 0 {
		return
	}
	tell(notice{What: noticeReached})
	select {} // until the kill
}

// around calls with both moments of a point.
func (f *fate) around(point string, call func() error) error {
	f.reach("before " + point)
	err := call()
	f.reach("after " + point)
	return err
}

func (f *fate) thawed() bool {
	select {
	case <-f.thaw:
		return true
	default:
		return false
	}
}

// intercept watches the worker's calls to the Temporal server.
func (f *fate) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	call := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
	switch r := req.(type) {
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		err := f.around(pointRecord, call)
		f.told(r.GetTaskToken(), err, false)
		return err
	case *workflowservice.RespondActivityTaskCompletedRequest:
		err := f.around(pointResult, call)
		f.told(r.GetTaskToken(), err, true)
		return err
	case *workflowservice.RespondActivityTaskFailedRequest:
		err := f.around(pointResult, call)
		f.told(r.GetTaskToken(), err, true)
		return err
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		err := f.around(pointDecision, call)
		if answer, ok := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse); ok && err == nil {
			for _, task := range answer.GetActivityTasks() {
				f.given(task)
			}
		}
		return err
	}
	err := call()
	if task, ok := reply.(*workflowservice.PollActivityTaskQueueResponse); ok && err == nil {
		f.given(task)
	}
	return err
}

// given notes an activity that the server handed over.
func (f *fate) given(task *workflowservice.PollActivityTaskQueueResponse) {
	if len(task.GetTaskToken()) == 0 {
		return
	}
	thread := task.GetWorkflowExecution().GetWorkflowId()
	f.mu.Lock()
	f.threads[string(task.GetTaskToken())] = thread
	f.mu.Unlock()
	tell(notice{What: noticeBegin, Thread: thread, Attempt: task.GetAttempt()})
}

// told notes how the server took a record or an end of an activity.
func (f *fate) told(token []byte, err error, end bool) {
	f.mu.Lock()
	thread := f.threads[string(token)]
	f.mu.Unlock()
	switch {
	case status.Code(err) == codes.NotFound:
		tell(notice{What: noticeRefused, Thread: thread})
	case err != nil:
	case f.thawed():
		tell(notice{What: noticeTaken, Thread: thread})
	case end:
		tell(notice{What: noticeEnd, Thread: thread})
	}
}
