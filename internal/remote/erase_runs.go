package remote

import (
	"context"
	"errors"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// threadRuns are the runs of an id, the newest last.
type threadRuns struct {
	id   string
	kind string // of workflow, "" when there is none
	runs []string
	// newest is the one that the server has of that id now, nil for none.
	newest *workflowservice.DescribeWorkflowExecutionResponse
	open   bool
	closed time.Time // the latest
	// holds are what erasures have left of their holds, in no order.
	holds []string
}

// has reports whether a run is one of these.
func (t threadRuns) has(run string) bool {
	return slices.Contains(t.runs, run) || slices.Contains(t.holds, run)
}

// runsOf finds the runs of an id: the newest, those that it names as its predecessors, and what the server's index has beside them. The
// index is a moment behind, and runs that were reset are nobody's predecessors.
func (e *eraser) runsOf(ctx context.Context, id string) (threadRuns, error) {
	t := threadRuns{id: id}
	newest, err := e.described(ctx, id, "")
	if err != nil {
		return t, err
	}
	if isHold(newest) {
		t.holds = append(t.holds, runID(newest))
		newest = nil
	}
	kind := newest.GetWorkflowExecutionInfo().GetType().GetName()
	if newest != nil && kind != protocol.GraphWorkflow && kind != protocol.LeaderWorkflow {
		return t, notOfKind(id, kind)
	}
	t.kind, t.newest = kind, newest
	listed, err := e.listed(ctx, "WorkflowId = "+quotedInQuery(id))
	if err != nil {
		return t, err
	}
	known := map[string]bool{}
	for next := runID(newest); next != "" && !known[next]; {
		known[next] = true
		t.runs = append(t.runs, next)
		if next, err = e.before(ctx, id, next); err != nil {
			return t, err
		}
	}
	slices.Reverse(t.runs)
	for _, run := range listed {
		if !known[run.GetRunId()] {
			t.runs = slices.Insert(t.runs, 0, run.GetRunId())
		}
	}
	named := t.runs
	t.runs = nil
	for _, run := range named {
		described, err := e.described(ctx, id, run)
		if err != nil {
			return t, err
		}
		if described == nil { // of the past that the server has no more, or removed a moment ago
			continue
		}
		if isHold(described) {
			if !t.has(run) {
				t.holds = append(t.holds, run)
			}
			continue
		}
		t.runs = append(t.runs, run)
		t.open = t.open || isOpen(described)
		if at := described.GetWorkflowExecutionInfo().GetCloseTime(); at != nil && at.AsTime().After(t.closed) {
			t.closed = at.AsTime()
		}
	}
	return t, nil
}

// runID is "" for none.
func runID(d *workflowservice.DescribeWorkflowExecutionResponse) string {
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

func isOpen(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return true
	}
	return false
}

// described is a run of an id, "" for the newest; nil when the server has none.
func (c *server) described(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := patiently(ctx, c, id, func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return c.temporal.DescribeWorkflowExecution(ctx, id, run)
	})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil, nil
	}
	return d, err
}

// listed are the runs that the server's index has, those that began first first.
func (e *eraser) listed(ctx context.Context, query string) (all []*commonpb.WorkflowExecution, err error) {
	var token []byte
	for {
		page, err := e.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: e.cfg.Namespace, PageSize: listPage, NextPageToken: token, Query: query})
		if err != nil {
			return nil, err
		}
		for _, info := range page.GetExecutions() {
			all = append(all, info.GetExecution())
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// before is the run that a run follows, "" for none. What the input says is not needed when it cannot be read: its values go after all
// runs before it have gone.
func (e *eraser) before(ctx context.Context, id, run string) (string, error) {
	events, _, err := e.page(ctx, id, run, nil, 1)
	if err != nil || len(events) == 0 {
		return "", err
	}
	started := events[0].GetWorkflowExecutionStartedEventAttributes()
	var in protocol.GraphInput
	if started.GetWorkflowType().GetName() == protocol.GraphWorkflow && e.cfg.DataConverter.FromPayloads(started.GetInput(), &in) == nil && in.Previous != "" {
		return in.Previous, nil
	}
	return started.GetContinuedExecutionRunId(), nil
}

// page is a page of a run's events as they are stored; none of a run that is gone.
func (e *eraser) page(ctx context.Context, id, run string, token []byte, most int32) ([]*historypb.HistoryEvent, []byte, error) {
	page, err := e.service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: e.cfg.Namespace,
		MaximumPageSize: most, NextPageToken: token, Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil, nil, nil
	}
	return page.GetHistory().GetEvents(), page.GetNextPageToken(), err
}

// events hands out all events of a run as they are stored.
func (e *eraser) events(ctx context.Context, id, run string, take func(*historypb.HistoryEvent) error) error {
	for token := []byte(nil); ; {
		events, next, err := e.page(ctx, id, run, token, 0)
		if err != nil {
			return err
		}
		for _, event := range events {
			if err := take(event); err != nil {
				return err
			}
		}
		if token = next; len(token) == 0 {
			return nil
		}
	}
}

// attempts are the threads of a job's attempts: those that its leader has started, and those that the server's index has.
func (e *eraser) attempts(ctx context.Context, leader threadRuns) (map[string]bool, error) {
	of, ids := job.Of(e.Thread), map[string]bool{}
	is := func(id string) {
		if owner, subjob := job.OfAttempt(id); owner == of && subjob != "" {
			ids[id] = true
		}
	}
	for _, run := range leader.runs {
		err := e.events(ctx, leader.id, run, func(event *historypb.HistoryEvent) error {
			is(event.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowId())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	listed, err := e.listed(ctx, "WorkflowId STARTS_WITH "+quotedInQuery(job.WorkflowID(of)+"/"))
	for _, run := range listed {
		is(run.GetWorkflowId())
	}
	return ids, err
}
