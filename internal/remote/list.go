package remote

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

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
	return newest(ctx, c, listing{protocol.GraphWorkflow, q.Graph, q.Limit}, func(info *workflowpb.WorkflowExecutionInfo) (v thread.View, of string, wanted bool) {
		v = c.listed(info)
		return v, v.Graph, q.Status == "" || v.Status == q.Status
	})
}

// listing selects runs of a kind of workflow, and of a graph or leader, "" for any. 0 is the default limit.
type listing struct {
	kind, of string
	limit    int
}

// newest is what show makes of the newest run of each id, up to the limit. Show also says of which graph or leader the run is, and
// whether it is wanted. The server's index does what it can. The status is left to show: an older run of an id must not stand in
// for its newest.
func newest[T any](ctx context.Context, c *reader, q listing, show func(*workflowpb.WorkflowExecutionInfo) (item T, of string, wanted bool)) ([]T, error) {
	filter := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", q.kind)
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	if has.Lists && q.of != "" {
		filter += fmt.Sprintf(" AND %s = %s", protocol.AttributeGraph, quotedInQuery(q.of))
	}
	limit, seen, out := cmp.Or(max(q.limit, 0), defaultList), map[string]bool{}, []T{}
	var token []byte
	for range listPages {
		page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.cfg.Namespace, PageSize: listPage, NextPageToken: token, Query: filter,
		})
		if err != nil {
			return nil, c.explain(err, q.of, "")
		}
		for _, info := range page.GetExecutions() {
			id := info.GetExecution().GetWorkflowId()
			item, of, wanted := show(info)
			if seen[id] || q.of != "" && of != q.of {
				continue
			}
			if seen[id] = true; !wanted {
				continue
			}
			if out = append(out, item); len(out) == limit {
				return out, nil
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	return out, nil
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
	return &p
}
