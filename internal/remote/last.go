package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/internal/codec"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// lastRun is a thread's newest execution.
type lastRun struct {
	thread, graph, runID string
	kind                 string // of workflow
	queue                string // the task queue of its workers, which may be another one than the client's
	// first is the run that this one continues as new ones of the same execution, or this one.
	first     string
	open      bool
	status    enumspb.WorkflowExecutionStatus
	started   time.Time
	described *workflowservice.DescribeWorkflowExecutionResponse
	// closing is the last event of a run that is over, when it was read already.
	closing *historypb.HistoryEvent
}

// lastRun returns the thread's newest execution, nil when there is none.
func (c *server) lastRun(ctx context.Context, thread string) (*lastRun, error) {
	return c.lastOf(ctx, thread, protocol.GraphWorkflow)
}

// lastOf returns the newest execution of an id that is of one type of workflow, nil when there is none.
func (c *server) lastOf(ctx context.Context, thread, kind string) (*lastRun, error) {
	described, err := patiently(ctx, c, thread, func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return c.temporal.DescribeWorkflowExecution(ctx, thread, "")
	})
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil, nil
	}
	if err != nil {
		return nil, c.explain(err, "", thread)
	}
	if isHold(described) {
		if isOpen(described) {
			return nil, beingErased(thread)
		}
		return nil, nil // what an erasure has left that was interrupted
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != kind {
		return nil, notOfKind(thread, info.GetType().GetName())
	}
	graph := c.graphOf(info)
	if graph == "" && kind == protocol.GraphWorkflow {
		in, err := startedWith(ctx, c, info.GetExecution()) // another program than ours started it, and no worker has had it
		if err != nil {
			return nil, c.explain(err, "", thread)
		}
		graph = in.Graph
	}
	return &lastRun{
		kind: kind, thread: thread, graph: graph, runID: info.GetExecution().GetRunId(), status: info.GetStatus(),
		first:   cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()),
		queue:   described.GetExecutionConfig().GetTaskQueue().GetName(),
		open:    info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
		started: info.GetStartTime().AsTime(), described: described,
	}, nil
}

// notOfKind refuses an id that belongs to a workflow of another type.
func notOfKind(id, is string) error {
	name, ok := strings.CutPrefix(id, job.WorkflowID(""))
	if is == protocol.LeaderWorkflow && ok {
		return &thread.Error{Kind: thread.ErrNotFound, Thread: id, Message: fmt.Sprintf("%q is a job, not a thread", id), Do: "Look at the job",
			Command: []string{"job", "show", name}}
	}
	return &thread.Error{Kind: thread.ErrNotFound, Thread: id, Message: fmt.Sprintf("workflow %q is no thread", id)}
}

// theLastRun is lastRun for a thread that must exist.
func (c *server) theLastRun(ctx context.Context, threadID string) (*lastRun, error) {
	last, err := c.lastRun(ctx, threadID)
	if err == nil && last == nil {
		err = noThread(threadID)
	}
	return last, err
}

func noThread(threadID string) error {
	return &thread.Error{Kind: thread.ErrNotFound, Thread: threadID, Message: "there is no thread " + strconv.Quote(threadID),
		Do: "List the threads there are", Command: []string{"list"}}
}

// graphOf is the graph, or the leader, of a run as lists show it; "" where nobody has said it yet.
func (c *server) graphOf(info *workflowpb.WorkflowExecutionInfo) string {
	var graph string
	from, p := converter.GetDefaultDataConverter(), info.GetSearchAttributes().GetIndexedFields()[protocol.AttributeGraph]
	if p == nil {
		from, p = c.cfg.DataConverter, info.GetMemo().GetFields()[protocol.MemoGraph]
	}
	if p == nil || from.FromPayload(p, &graph) != nil {
		return ""
	}
	return graph
}

// startedWith is the input that a run was started with, as far as the run does not say it itself. One that cannot be read is empty: the
// run will say what is wrong with it.
func startedWith(ctx context.Context, c *server, run *commonpb.WorkflowExecution) (in protocol.GraphInput, err error) {
	page, err := c.service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.cfg.Namespace, Execution: run, MaximumPageSize: 1,
	})
	if err != nil {
		return in, err
	}
	for _, e := range page.GetHistory().GetEvents() {
		if c.cfg.DataConverter.FromPayloads(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in) != nil {
			return protocol.GraphInput{}, nil
		}
	}
	return in, nil
}

func (c *server) closingEvent(ctx context.Context, last *lastRun) (*historypb.HistoryEvent, error) {
	if last.closing != nil {
		return last.closing, nil
	}
	page, err := c.service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.cfg.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: last.thread, RunId: last.runID},
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
	})
	if err != nil {
		return nil, err
	}
	events := page.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil, fmt.Errorf("run %s has no closing event", last.runID)
	}
	last.closing = events[len(events)-1]
	return last.closing, nil
}

// startOf returns a run's first event.
func (c *server) startOf(ctx context.Context, thread, run string) (*historypb.WorkflowExecutionStartedEventAttributes, error) {
	page, err := c.service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.cfg.Namespace, MaximumPageSize: 1, Execution: &commonpb.WorkflowExecution{WorkflowId: thread, RunId: run},
	})
	if err != nil {
		return nil, c.explain(err, "", thread)
	}
	events := page.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil, nil
	}
	return events[0].GetWorkflowExecutionStartedEventAttributes(), nil
}

// inputOf returns what a run was started with.
func (c *server) inputOf(ctx context.Context, thread, run string) (in protocol.GraphInput, err error) {
	started, err := c.startOf(ctx, thread, run)
	if err == nil {
		err = c.decode(started.GetInput(), &in)
	}
	return in, err
}

// historyLength returns how many events a run of a thread has now.
func (c *server) historyLength(ctx context.Context, threadID, run string) (int64, error) {
	described, err := c.temporal.DescribeWorkflowExecution(ctx, threadID, run)
	var gone *serviceerror.NotFound
	var malformed *serviceerror.InvalidArgument
	if errors.As(err, &gone) || errors.As(err, &malformed) {
		return 0, &thread.Error{Kind: thread.ErrNotFound, Thread: threadID, Message: fmt.Sprintf("thread %q has no run %q, or no longer", threadID, run),
			Do: "Stream without an offset to begin with its newest run"}
	}
	if err != nil {
		return 0, c.explain(err, "", threadID)
	}
	return described.GetWorkflowExecutionInfo().GetHistoryLength(), nil
}

// awaitEnd waits for a run's last event, and for that of the runs that it is continued as.
func (c *server) awaitEnd(ctx context.Context, last *lastRun) error {
	return c.temporal.GetWorkflow(ctx, last.thread, last.runID).Get(ctx, nil)
}

// canRetry says which ends of a run a retry can go on from.
func canRetry(s enumspb.WorkflowExecutionStatus) bool { return statusOf(s).Unfinished() }

// closedStatuses are the statuses of runs that have ended, by the server's.
var closedStatuses = map[enumspb.WorkflowExecutionStatus]thread.Status{
	enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:  thread.StatusFinished,
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   thread.StatusCancelled,
	enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: thread.StatusTerminated,
	enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  thread.StatusTimedOut,
	enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:     thread.StatusFailed,
}

func statusOf(s enumspb.WorkflowExecutionStatus) thread.Status {
	return cmp.Or(closedStatuses[s], thread.StatusRunning)
}

// newestEvents are a run's last events, newest first.
func (c *server) newestEvents(ctx context.Context, last *lastRun) ([]*historypb.HistoryEvent, error) {
	page, err := c.service.GetWorkflowExecutionHistoryReverse(ctx,
		&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: c.cfg.Namespace, MaximumPageSize: newestPage,
			Execution: &commonpb.WorkflowExecution{WorkflowId: last.thread, RunId: last.runID},
		})
	return page.GetHistory().GetEvents(), err
}

// newestPage is enough to find what just happened: a cancelled run ends a few events after the request, plus those of
// the tasks that were under way.
const newestPage = 200

// lastTaskFailure returns why the run's workflow task fails, from the newest page of its history.
func (c *server) lastTaskFailure(ctx context.Context, last *lastRun) (string, error) {
	events, err := c.newestEvents(ctx, last)
	if err != nil {
		return "", err
	}
	for _, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED {
			return codec.Message(c.cfg.DataConverter, e.GetWorkflowTaskFailedEventAttributes().GetFailure()), nil
		}
	}
	return "", nil
}
