package remote

import (
	"context"
	"errors"
	"slices"
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
