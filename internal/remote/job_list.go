package remote

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Jobs returns jobs, those started last first, each with its newest run.
func (c *Jobs) Jobs(ctx context.Context, q thread.JobsQuery) ([]thread.JobItem, error) {
	return newest(ctx, c.reader, listing{protocol.LeaderWorkflow, q.Leader, q.Limit}, func(info *workflowpb.WorkflowExecutionInfo) (j thread.JobItem, of string, wanted bool) {
		j = c.jobItem(info)
		return j, j.Leader, q.Status == "" || j.Status == q.Status
	})
}

func (c *Jobs) jobItem(info *workflowpb.WorkflowExecutionInfo) thread.JobItem {
	item := thread.JobItem{ID: info.GetExecution().GetWorkflowId()[len(job.WorkflowID("")):], Leader: c.graphOf(info), Started: info.GetStartTime().AsTime()}
	if p, ok := info.GetMemo().GetFields()[memoJobGoal]; ok && c.cfg.DataConverter.FromPayload(p, &item.Goal) != nil {
		item.Goal = "" // written with another converter
	}
	if info.GetCloseTime() != nil {
		item.Ended = info.GetCloseTime().AsTime()
	}
	var status thread.Status
	attribute(info, protocol.AttributeStatus, &status)
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		item.Status, item.Waits = job.StatusRunning, status == thread.StatusWaiting
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		item.Status = job.StatusFinished
		if status == thread.StatusStopped {
			item.Status = job.StatusStopped
		}
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		item.Status = job.StatusFailed
	default: // ended from outside
		item.Status = job.StatusStopped
	}
	return item
}

// jobQuestions are the open questions of a job and of its attempts; none when the namespace does not index questions.
func (c *Jobs) jobQuestions(ctx context.Context, id string) ([]thread.InboxItem, error) {
	has, err := c.hasAttributes(ctx)
	if err != nil || !has.Inbox {
		return nil, err
	}
	reply, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.cfg.Namespace, PageSize: mostInbox,
		Query: fmt.Sprintf("%s AND (WorkflowId = %s OR WorkflowId STARTS_WITH %s)", asksPeople,
			quotedInQuery(job.WorkflowID(id)), quotedInQuery(job.WorkflowID(id)+"/")),
	})
	if err != nil {
		return nil, c.explain(err, "", job.WorkflowID(id))
	}
	var out []thread.InboxItem
	for _, info := range reply.GetExecutions() {
		out = append(out, c.inboxItems(info)...)
	}
	return out, nil
}
