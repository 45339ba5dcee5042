package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/test/chaos/fault"
)

// The points of a worker's life right before and right after which it can die, beside its calls to the Temporal server: its calls to
// payments.
const (
	pointOrder  = "order"
	pointRefund = "refund"
	pointLookup = "lookup"
	pointNotify = "notify"
)

// points are all of them; those where things can go wrong most often come twice.
var points = []string{
	fault.Record, fault.Record, fault.Result, fault.Result, fault.Decision, pointOrder, pointRefund, pointRefund, pointLookup, pointNotify,
}

// fate is what happens to one worker. It hangs for good where it shall die, so that whoever is told kills it there.
type fate struct {
	*fault.Fault
	// holding makes calls to payments wait for the thaw.
	holding bool
	thaw    chan struct{}

	mu    sync.Mutex
	hands map[string]notice // the activities in hand, by task token: their Thread, Activity and Attempt
}

func newFate(moment string, count int64, holding bool) *fate {
	f := &fate{holding: holding, thaw: make(chan struct{}), hands: map[string]notice{}}
	f.Fault = fault.New(moment, count, func() {
		tell(notice{What: noticeReached})
		select {} // until the kill
	})
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
	call := func() error { return f.Intercept(ctx, method, req, reply, cc, invoke, opts...) }
	thawed := f.thawed() // what was on its way when the worker froze is no call of a thawed one
	switch r := req.(type) {
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		began := time.Now()
		f.signs(r)
		err := call()
		f.told(r.GetTaskToken(), err, false, thawed)
		if err == nil {
			f.tells(r.GetTaskToken(), notice{What: noticeSign, Took: time.Since(began)})
		}
		return err
	case *workflowservice.RespondActivityTaskCompletedRequest:
		f.tells(r.GetTaskToken(), notice{What: noticeEnding, WentOn: true})
		err := call()
		f.told(r.GetTaskToken(), err, true, thawed)
		return err
	case *workflowservice.RespondActivityTaskCanceledRequest:
		f.tells(r.GetTaskToken(), notice{What: noticeEnding, WentOn: true})
		err := call()
		f.told(r.GetTaskToken(), err, true, thawed)
		return err
	case *workflowservice.RespondActivityTaskFailedRequest:
		failure := r.GetFailure().GetApplicationFailureInfo()
		f.tells(r.GetTaskToken(), notice{What: noticeEnding, WentOn: failure.GetType() == graphadapter.NodeFailedType})
		err := call()
		f.told(r.GetTaskToken(), err, true, thawed)
		return err
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		err := call()
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
	run := task.GetWorkflowExecution()
	n := notice{Thread: run.GetWorkflowId(), Attempt: task.GetAttempt()}
	// Tasks have the name of their graph and node; the others are no executions of nodes.
	if name := task.GetActivityType().GetName(); name == segment.SegmentActivity || strings.Contains(name, ".") {
		n.Activity = run.GetRunId() + " " + task.GetActivityId()
	}
	f.mu.Lock()
	f.hands[string(task.GetTaskToken())] = n
	f.mu.Unlock()
	waited := task.GetStartedTime().AsTime().Sub(task.GetScheduledTime().AsTime())
	f.tells(task.GetTaskToken(), notice{What: noticeBegin, Took: waited})
}

// signs tells that a heartbeat is about to be sent, and whether it says that the end of its execution is known.
func (f *fate) signs(r *workflowservice.RecordActivityTaskHeartbeatRequest) {
	var progress graphadapter.Progress
	if err := converter.GetDefaultDataConverter().FromPayloads(r.GetDetails(), &progress); err != nil {
		panic(fmt.Sprintf("a heartbeat that this program cannot read: %v", err))
	}
	f.mu.Lock()
	of := f.hands[string(r.GetTaskToken())]
	f.mu.Unlock()
	f.tells(r.GetTaskToken(), notice{What: noticeSigns, Closes: of.Attempt > 0 && progress.Accounted >= of.Attempt})
}

// tells completes a notice about an activity in hand.
func (f *fate) tells(token []byte, n notice) {
	f.mu.Lock()
	of := f.hands[string(token)]
	f.mu.Unlock()
	n.Thread, n.Activity, n.Attempt = of.Thread, of.Activity, of.Attempt
	tell(n)
}

// told notes how the server took a record or an end of an activity, from a worker that had thawed when it called.
func (f *fate) told(token []byte, err error, end, thawed bool) {
	switch {
	case status.Code(err) == codes.NotFound:
		f.tells(token, notice{What: noticeRefused})
	case err != nil:
	case thawed:
		f.tells(token, notice{What: noticeTaken})
	case end:
		f.tells(token, notice{What: noticeEnd})
	}
}
