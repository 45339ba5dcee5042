package superstep

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/codec"
	"superstep.dev/workflows/protocol"
)

// problem says why an open run makes no progress although nothing failed; "" when there is no sign of that.
func (c *Client) problem(ctx context.Context, last *lastRun) (string, error) {
	if task := last.described.GetPendingWorkflowTask(); task.GetAttempt() > 1 {
		cause, err := c.lastTaskFailure(ctx, last)
		if err != nil {
			return "", c.explain(err, last.graph, last.thread)
		}
		return cause, nil
	}
	for _, a := range last.described.GetPendingActivities() {
		failure := a.GetLastFailure()
		kind := failure.GetApplicationFailureInfo().GetType()
		switch {
		case a.GetActivityType().GetName() == graphadapter.NotifyActivity:
			continue // nothing waits for whoever is to be told
		case kind == graphadapter.NodeUnservedType, kind == graphadapter.NodeInputType:
			return codec.Message(c.cfg.DataConverter, failure), nil
		case kind == graphadapter.NodeRetryType:
			return fmt.Sprintf("%s failed and will be tried again: %s", a.GetActivityType().GetName(),
				codec.Message(c.cfg.DataConverter, failure)), nil
		case a.GetAttempt() > 3:
			return fmt.Sprintf("%s was started %d times: its workers get lost", a.GetActivityType().GetName(), a.GetAttempt()), nil
		}
	}
	return "", nil
}

// cancelReason returns what was said when a cancelled run was cancelled: by a Client with its request, which goes through
// the data converter; by another of Temporal's clients with the server's.
func (c *Client) cancelReason(ctx context.Context, last *lastRun) string {
	const unsaid = "cancelled"
	events, err := c.newestEvents(ctx, last)
	if err != nil {
		return unsaid // the run is cancelled all the same
	}
	for _, e := range events {
		if reason := e.GetWorkflowExecutionCancelRequestedEventAttributes().GetCause(); reason != "" {
			return reason
		}
		var req protocol.CancelRequest
		signal := e.GetWorkflowExecutionSignaledEventAttributes()
		if signal.GetSignalName() == protocol.SignalCancel && c.cfg.DataConverter.FromPayloads(signal.GetInput(), &req) == nil && req.Reason != "" {
			return req.Reason
		}
	}
	return unsaid
}

// newestEvents are a run's last events, newest first.
func (c *Client) newestEvents(ctx context.Context, last *lastRun) ([]*historypb.HistoryEvent, error) {
	page, err := c.temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx,
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
func (c *Client) lastTaskFailure(ctx context.Context, last *lastRun) (string, error) {
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

func (c *Client) describeNamespace(ctx context.Context) (interface {
	GetConfig() *namespacepb.NamespaceConfig
}, error) {
	return c.temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.cfg.Namespace})
}

func effectView(node string, e ledger.Entry) EffectView {
	return EffectView{Key: e.Key, Effect: e.Name, Node: node, State: string(e.State), Attempts: e.Attempts,
		Receipt: e.Result, Evidence: e.Evidence, Approved: e.Approved}
}

// unreadable stands in for the custom reducers of a graph that this process does not have: enough to read what is
// stored, which needs no reducing.
func unreadable(spec *pregel.Spec) map[string]pregel.Reducer {
	out := map[string]pregel.Reducer{}
	for _, ch := range spec.Channels {
		if _, known := pregel.Builtin(ch.Reducer); ch.Kind == pregel.KindReduce && !known {
			out[ch.Reducer] = absentReducer(ch.Reducer)
		}
	}
	for _, sub := range spec.Subgraphs {
		for name, r := range unreadable(sub) {
			out[name] = r
		}
	}
	return out
}

// absentReducer is the name of a reducer without its function.
type absentReducer string

func (r absentReducer) Name() string       { return string(r) }
func (r absentReducer) Zero() pregel.Value { return nil }

func (r absentReducer) Reduce(pregel.Value, []pregel.Value) (pregel.Value, error) {
	return nil, fmt.Errorf("the reducer %q is not part of this process", string(r))
}
