package remote

import (
	"context"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

const (
	defaultList = 100
	listPage    = 200
	// listPages bounds the pages read for one call: with a filter that only this client can apply, most may not match.
	listPages = 50
)

// List returns threads, those started last first, each with its newest run.
func (c *reader) List(ctx context.Context, q thread.ListQuery) ([]thread.View, error) {
	if q.Limit <= 0 {
		q.Limit = defaultList
	}
	filter, err := c.filter(ctx, q)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	out := []thread.View{}
	var token []byte
	for range listPages {
		page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.cfg.Namespace, PageSize: listPage, NextPageToken: token, Query: filter,
		})
		if err != nil {
			return nil, c.explain(err, q.Graph, "")
		}
		for _, info := range page.GetExecutions() {
			id := info.GetExecution().GetWorkflowId()
			v := c.listed(info)
			if seen[id] || q.Graph != "" && v.Graph != q.Graph {
				continue
			}
			seen[id] = true
			if q.Status != "" && v.Status != q.Status {
				continue
			}
			if out = append(out, v); len(out) == q.Limit {
				return out, nil
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	return out, nil
}

// filter lets the server's index do what it can. The status is left to the client: an older run of a thread must not
// stand in for its newest.
func (c *reader) filter(ctx context.Context, q thread.ListQuery) (string, error) {
	filter := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", protocol.GraphWorkflow)
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return "", err
	}
	if has.Lists && q.Graph != "" {
		filter += fmt.Sprintf(" AND %s = %s", protocol.AttributeGraph, quotedInQuery(q.Graph))
	}
	return filter, nil
}

// quotedInQuery is a text within a query of the server's index.
func quotedInQuery(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

func (c *reader) listed(info *workflowpb.WorkflowExecutionInfo) thread.View {
	v := thread.View{
		Thread: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(), Graph: c.graphOf(info),
		Status: statusOf(info.GetStatus()), Started: c.began(info), Events: info.GetHistoryLength(),
		HistoryBytes: info.GetHistorySizeBytes(),
	}
	if info.GetCloseTime() != nil {
		v.Closed = info.GetCloseTime().AsTime()
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		attribute(info, protocol.AttributeStatus, &v.Status)
		attribute(info, protocol.AttributeNodes, &v.Nodes)
		v.Paused = c.pauseOf(info)
		v.Held = v.Status.Failed()
	}
	if v.Status == thread.StatusFailed {
		var closed thread.Status
		attribute(info, protocol.AttributeStatus, &closed)
		if closed.Failed() {
			v.Status = closed
		}
	}
	return v
}

// attribute reads a search attribute if the run has it. The server reads them too, so no codec is applied to them.
func attribute(info *workflowpb.WorkflowExecutionInfo, name string, into any) {
	if p, ok := info.GetSearchAttributes().GetIndexedFields()[name]; ok {
		// An attribute of another type than ours says nothing.
		_ = converter.GetDefaultDataConverter().FromPayload(p, into)
	}
}

// pauseOf reads from a run's memo who paused it, nil when nobody did.
func (c *reader) pauseOf(info *workflowpb.WorkflowExecutionInfo) *thread.PauseView {
	var p protocol.Pause
	field, ok := info.GetMemo().GetFields()[protocol.MemoPause]
	if !ok || c.cfg.DataConverter.FromPayload(field, &p) != nil || p.At.IsZero() {
		return nil
	}
	return runtime.PauseView(&p)
}
