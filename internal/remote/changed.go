package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"superstep.dev/workflows/protocol"
)

const (
	// indexLag is how long the server's index may be behind a run. It is half a second on the devserver, and about one on a cluster, so
	// this leaves room for a busy one.
	indexLag = 5 * time.Second
	// mostChanged bounds the runs that one list asks for by themselves: of what a client has changed within the lag, the latest.
	mostChanged = 100
	// describedAtOnce bounds the calls under way for them.
	describedAtOnce = 8
)

// unlisted is what the server's index may not know yet of what this client has changed.
type unlisted struct{ *reader }

// runs are the newest runs of it by id, nil for one that is gone. A client that has changed nothing pays no call.
func (c unlisted) runs(ctx context.Context) (map[string]*workflowpb.WorkflowExecutionInfo, error) {
	var mu sync.Mutex
	all := map[string]*workflowpb.WorkflowExecutionInfo{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(describedAtOnce)
	for _, id := range c.changed.latest(indexLag, mostChanged) {
		group.Go(func() error {
			described, err := patiently(ctx, c.server, id, func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
				return c.temporal.DescribeWorkflowExecution(ctx, id, "")
			})
			var gone *serviceerror.NotFound
			if err != nil && !errors.As(err, &gone) {
				return c.explain(err, "", id)
			}
			mu.Lock()
			defer mu.Unlock()
			all[id] = described.GetWorkflowExecutionInfo()
			return nil
		})
	}
	return all, group.Wait()
}

// asking are the runs of a page of the inbox, with what this client has changed in place of what the index says. What the index does
// not list yet is on the first page.
func (c unlisted) asking(ctx context.Context, q inboxFilter, query string, page *workflowservice.ListWorkflowExecutionsResponse) ([]*workflowpb.WorkflowExecutionInfo, error) {
	changed, err := c.runs(ctx)
	if err != nil || len(changed) == 0 {
		return page.GetExecutions(), err
	}
	var asking []*workflowpb.WorkflowExecutionInfo
	for _, info := range page.GetExecutions() {
		id := info.GetExecution().GetWorkflowId()
		if now, ok := changed[id]; ok {
			info = now
			delete(changed, id)
		}
		if q.matches(info) {
			asking = append(asking, info)
		}
	}
	maps.DeleteFunc(changed, func(_ string, info *workflowpb.WorkflowExecutionInfo) bool { return !q.matches(info) })
	if q.Page != "" || len(changed) == 0 {
		return asking, nil
	}
	ids := slices.Sorted(maps.Keys(changed))
	if len(page.GetNextPageToken()) > 0 {
		later, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: c.cfg.Namespace,
			PageSize: mostChanged, Query: query + " AND " + idsInQuery(ids)})
		if err != nil {
			return nil, c.explain(err, q.Graph, "")
		}
		for _, info := range later.GetExecutions() { // it is on a later page
			delete(changed, info.GetExecution().GetWorkflowId())
		}
	}
	for _, id := range ids {
		if info, ok := changed[id]; ok {
			asking = append(asking, info)
		}
	}
	return asking, nil
}

// idsInQuery selects these ids in a query of the server's index.
func idsInQuery(ids []string) string {
	var quoted []string
	for _, id := range ids {
		quoted = append(quoted, quotedInQuery(id))
	}
	return fmt.Sprintf("WorkflowId IN (%s)", strings.Join(quoted, ", "))
}

// matches is [inboxFilter.filter] for a run that the index was not asked for.
func (q inboxFilter) matches(info *workflowpb.WorkflowExecutionInfo) bool {
	var questions int
	var graph string
	var approvers []string
	var due time.Time
	attribute(info, protocol.AttributeQuestions, &questions)
	attribute(info, protocol.AttributeGraph, &graph)
	attribute(info, protocol.AttributeApprovers, &approvers)
	attribute(info, protocol.AttributeDue, &due)
	kind, asked := info.GetType().GetName(), q.asked()
	return questions > 0 && (kind == protocol.GraphWorkflow || kind == protocol.LeaderWorkflow) &&
		info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && (q.Graph == "" || graph == q.Graph) &&
		(len(asked) == 0 || slices.ContainsFunc(append(asked, protocol.AnyApprover), func(name string) bool { return slices.Contains(approvers, name) })) &&
		(!q.Overdue || !due.IsZero() && due.Before(time.Now()))
}
