package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/internal/codec"
	"superstep.dev/job"
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
}

// lastRun returns the thread's newest execution, nil when there is none.
func (c *Client) lastRun(ctx context.Context, thread string) (*lastRun, error) {
	return c.lastOf(ctx, thread, protocol.GraphWorkflow)
}

// lastOf returns the newest execution of an id that is of one type of workflow, nil when there is none.
func (c *Client) lastOf(ctx context.Context, thread, kind string) (*lastRun, error) {
	described, err := c.temporal.DescribeWorkflowExecution(ctx, thread, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil, nil
	}
	if err != nil {
		return nil, c.explain(err, "", thread)
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != kind {
		return nil, notOfKind(thread, info.GetType().GetName())
	}
	graph := c.graphOf(info)
	if graph == "" && kind == protocol.GraphWorkflow {
		if graph, err = graphStarted(ctx, c, info.GetExecution()); err != nil {
			return nil, c.explain(err, "", thread)
		}
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
		return &Error{Kind: ErrNotFound, Thread: id, Message: fmt.Sprintf("%q is a job, not a thread", id), Do: "Look at the job",
			Command: []string{"job", "show", name}}
	}
	return &Error{Kind: ErrNotFound, Thread: id, Message: fmt.Sprintf("workflow %q is no thread", id)}
}

// theLastRun is lastRun for a thread that must exist.
func (c *Client) theLastRun(ctx context.Context, thread string) (*lastRun, error) {
	last, err := c.lastRun(ctx, thread)
	if err == nil && last == nil {
		err = &Error{Kind: ErrNotFound, Thread: thread, Message: "there is no thread " + quote(thread),
			Do: "List the threads there are", Command: []string{"list"}}
	}
	return last, err
}

func (c *Client) graphOf(info *workflowpb.WorkflowExecutionInfo) string {
	var graph string
	if p, ok := info.GetMemo().GetFields()[protocol.MemoGraph]; ok {
		if err := c.cfg.DataConverter.FromPayload(p, &graph); err != nil {
			return ""
		}
	}
	return graph
}

// graphStarted is the graph of a run that has not said so itself yet, since no worker has had it: another program than ours started
// it. The run's input names the graph; "" is an input that names none.
func graphStarted(ctx context.Context, c *Client, run *commonpb.WorkflowExecution) (string, error) {
	page, err := c.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.cfg.Namespace, Execution: run, MaximumPageSize: 1,
	})
	if err != nil {
		return "", err
	}
	var in protocol.GraphInput
	for _, e := range page.GetHistory().GetEvents() {
		input := e.GetWorkflowExecutionStartedEventAttributes().GetInput()
		if c.cfg.DataConverter.FromPayloads(input, &in) != nil {
			return "", nil // the run will say what is wrong with it
		}
	}
	return in.Graph, nil
}

// carryOver puts what the last run left into the input of the next, and returns the settings that it had; nil when it is
// not known.
func (c *Client) carryOver(ctx context.Context, last *lastRun, in *protocol.GraphInput) (settings *protocol.Settings, err error) {
	left, _, err := c.left(ctx, last)
	if err != nil {
		return nil, err
	}
	if left.State == nil && left.Failure != nil && left.Failure.Type == protocol.ErrTypeBadInput {
		return left.Settings, nil // the thread's first run could not begin
	}
	if left.State == nil {
		return nil, &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the thread cannot be continued: " +
			cmp.Or(left.Closing.Error, "its last run left no state"), Do: "Fork an earlier checkpoint as a new thread",
			Command: []string{"history", last.thread}}
	}
	if c := left.Cancel; c != nil && c.Halted != "" && in.Cancel == nil && !in.Replay {
		return nil, halted(last.graph, last.thread, c.Halted)
	}
	in.Suspects, in.Behind = left.Suspect, left.Behind
	in.Spec, in.State, in.Life, in.Lines = left.Spec, left.State, left.Life, left.Lines
	if last.status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		in.Suspect, in.Behind = left.Cancel == nil || !left.Cancel.Renewed, 1
	}
	return left.Settings, nil
}

// halted refuses to go on with a thread whose state stands behind effects that were undone.
func halted(graph, thread, why string) error {
	return &Error{Kind: ErrBadInput, Graph: graph, Thread: thread, Do: "Cancel it again in the same way, or run it from a checkpoint before them",
		Command: []string{"history", thread},
		Message: fmt.Sprintf("thread %q cannot go on by itself: effects of it were undone, and its state stands behind them: %s", thread, why)}
}

// left returns what a closed run left behind, from its last event; one that was ended from outside said nothing, and
// is asked through a worker. The message is why the run failed, "" if it did not.
func (c *Client) left(ctx context.Context, last *lastRun) (result protocol.GraphResult, message string, err error) {
	event, err := c.closingEvent(ctx, last)
	if err != nil {
		return result, "", c.explain(err, last.graph, last.thread)
	}
	result, said, err := c.leftIn(ctx, last, event)
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		if result.Cancel == nil || result.Cancel.Reason == "" {
			message = c.cancelReason(ctx, last)
		} else {
			message = result.Cancel.Reason
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		message = codec.Message(c.cfg.DataConverter, event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		message = "terminated: " + event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
	}
	if said || err != nil {
		return result, message, err
	}
	if message == "" {
		message = "ended from outside"
	}
	result.Graph = last.graph
	err = c.query(ctx, last, protocol.QueryHandoff, &result.Closing)
	return result, message, err
}

// leftIn reads a run's last event; said is false when it was not the run itself that ended it, or it could not say more
// than why. What an expert's run keeps from its leader is read from its history.
func (c *Client) leftIn(ctx context.Context, last *lastRun, event *historypb.HistoryEvent) (result protocol.GraphResult, said bool, err error) {
	result, said, err = c.saidIn(event)
	if err == nil && result.Stored {
		result, err = c.storedResult(ctx, last)
	}
	return result, said, err
}

func (c *Client) saidIn(event *historypb.HistoryEvent) (result protocol.GraphResult, said bool, err error) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return result, true, c.decode(event.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &result)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return result, true, c.decode(event.GetWorkflowExecutionCanceledEventAttributes().GetDetails(), &result)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		details := failureDetails(event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		return result, details != nil, c.decode(details, &result)
	}
	return result, false, nil
}

func failureDetails(f *failurepb.Failure) *commonpb.Payloads {
	return f.GetApplicationFailureInfo().GetDetails()
}

func (c *Client) decode(payloads *commonpb.Payloads, into any) error {
	if payloads == nil {
		return nil
	}
	if err := c.cfg.DataConverter.FromPayloads(payloads, into); err != nil {
		return unreadablePayload("", err)
	}
	return nil
}

func (c *Client) closingEvent(ctx context.Context, last *lastRun) (*historypb.HistoryEvent, error) {
	page, err := c.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
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
	return events[len(events)-1], nil
}

// query asks a worker about a run, open or closed.
func (c *Client) query(ctx context.Context, last *lastRun, name string, into any, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	value, err := c.temporal.QueryWorkflow(ctx, last.thread, last.runID, name, args...)
	if err != nil {
		return c.explainQuery(err, last.graph, last.thread, last.queue)
	}
	if err := value.Get(into); err != nil {
		return unreadablePayload(last.thread, err)
	}
	return nil
}
