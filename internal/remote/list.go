package remote

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// List returns threads, each with its newest run, in the order of the server's index: first the open ones, those started last
// first, then the closed ones, those closed last first. What this client has just changed is shown as it is, whatever the index says.
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
	limit, seen, rows := cmp.Or(max(q.limit, 0), defaultList), map[string]bool{}, []row[T]{}
	take := func(info *workflowpb.WorkflowExecutionInfo) {
		id := info.GetExecution().GetWorkflowId()
		item, of, wanted := show(info)
		if seen[id] || q.of != "" && of != q.of {
			return
		}
		if seen[id] = true; wanted {
			rows = append(rows, row[T]{info, item})
		}
	}
	changed, err := unlisted{c}.runs(ctx)
	if err != nil {
		return nil, err
	}
	for id, info := range changed {
		if info.GetType().GetName() == q.kind {
			take(info)
		}
		seen[id] = true
	}
	enough, token := len(rows)+limit, []byte(nil)
	for range listPages {
		page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.cfg.Namespace, PageSize: listPage, NextPageToken: token, Query: filter,
		})
		if err != nil {
			return nil, c.explain(err, q.of, "")
		}
		for _, info := range page.GetExecutions() {
			take(info)
		}
		if token = page.GetNextPageToken(); len(token) == 0 || len(rows) >= enough {
			break
		}
	}
	slices.SortStableFunc(rows, inOrder)
	out := []T{}
	for _, r := range rows[:min(limit, len(rows))] {
		out = append(out, r.item)
	}
	return out, nil
}

// row is a run, and what a list shows of it.
type row[T any] struct {
	info *workflowpb.WorkflowExecutionInfo
	item T
}

// inOrder is the order of the server's index.
func inOrder[T any](a, b row[T]) int {
	closed := func(r row[T]) time.Time {
		if t := r.info.GetCloseTime(); t != nil {
			return t.AsTime()
		}
		return time.Unix(1<<40, 0) // an open run is before all that are closed
	}
	return cmp.Or(closed(b).Compare(closed(a)), b.info.GetStartTime().AsTime().Compare(a.info.GetStartTime().AsTime()))
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
