// Package fault stops a worker at one moment of its life: right before or right after one of its calls.
package fault

import (
	"context"
	"sync/atomic"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"superstep.dev/graphadapter/segment"
)

// The points of a worker's life at which it calls the Temporal server. A moment is "before" or "after" one of them: "before record".
const (
	Record       = "record"       // a heartbeat with what a node did so far: intents, receipts, supersteps
	Result       = "result"       // the end of an activity
	Decision     = "decision"     // the end of a workflow task
	Handover     = "handover"     // one of those that hands the run over to the activity of a segment
	Continuation = "continuation" // one of those that ends the run with one that continues it
)

// Fault is what happens to one worker.
type Fault struct {
	moment  string
	left    atomic.Int64
	reached func()
}

// New is a fault at a moment, the count-th time that it comes; "" is none. There reached is called, which must not return: whatever it
// does, a worker that goes on behind it has had no fault.
func New(moment string, count int64, reached func()) *Fault {
	f := &Fault{moment: moment, reached: reached}
	f.left.Store(count)
	return f
}

// Around calls with both moments of each of these points.
func (f *Fault) Around(call func() error, points ...string) error {
	f.reach("before ", points)
	err := call()
	f.reach("after ", points)
	return err
}

func (f *Fault) reach(when string, points []string) {
	for _, point := range points {
		if when+point == f.moment && f.left.Add(-1) == 0 {
			f.reached()
		}
	}
}

// Points are those at which a worker is with a request to the Temporal server; none for most.
func Points(req any) []string {
	switch r := req.(type) {
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		return []string{Record}
	case *workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskFailedRequest:
		return []string{Result}
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		return decision(r.GetCommands())
	}
	return nil
}

func decision(commands []*commandpb.Command) []string {
	points := []string{Decision}
	for _, c := range commands {
		switch {
		case c.GetScheduleActivityTaskCommandAttributes().GetActivityType().GetName() == segment.SegmentActivity:
			points = append(points, Handover)
		case c.GetCommandType() == enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
			points = append(points, Continuation)
		}
	}
	return points
}

// Intercept is an interceptor of a worker's connection to the Temporal server.
func (f *Fault) Intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	return f.Around(func() error { return invoke(ctx, method, req, reply, cc, opts...) }, Points(req)...)
}
