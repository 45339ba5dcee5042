package activities

import (
	"context"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter/segment"
)

// WithConverter makes the worker read stored details with the converter of its client, when that is not Temporal's
// default. It returns n.
func (n *Nodes) WithConverter(c converter.DataConverter) *Nodes {
	n.converter = c
	return n
}

// StoredTasks reads what the heartbeats of tasks have stored, for the same reason as Stored.
func (n *Nodes) StoredTasks(ctx context.Context, req segment.StoredTasksRequest) (segment.StoredTasks, error) {
	described, err := n.client.DescribeWorkflowExecution(ctx, req.Thread, req.Run)
	if err != nil {
		return segment.StoredTasks{}, err
	}
	found, sizes := map[string]segment.StoredTask{}, map[string]int{}
	for _, pending := range described.GetPendingActivities() {
		id, details := pending.GetActivityId(), pending.GetHeartbeatDetails()
		if !slices.Contains(req.ActivityIDs, id) {
			continue
		}
		task := segment.StoredTask{Begun: begun(pending)}
		if details != nil {
			if err := n.converter.FromPayloads(details, &task.Progress); err != nil {
				return segment.StoredTasks{}, fmt.Errorf("what task %q of thread %s stored cannot be read (is its codec "+
					"configured?): %w", id, req.Thread, err)
			}
		}
		found[id], sizes[id] = task, details.Size()
	}
	return req.Page(found, sizes), nil
}

// Stored reads what a segment's heartbeats have stored. The server forgets it when it is asked to cancel an activity that
// no worker has at that moment, so a run asks before.
func (n *Nodes) Stored(ctx context.Context, req segment.StoredRequest) (out segment.StoredProgress, err error) {
	described, err := n.client.DescribeWorkflowExecution(ctx, req.Thread, req.Run)
	if err != nil {
		return out, err
	}
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityId() != req.ActivityID {
			continue
		}
		if out.Begun = begun(pending); pending.GetHeartbeatDetails() == nil {
			continue
		}
		if err := n.converter.FromPayloads(pending.GetHeartbeatDetails(), &out.Progress, &out.Record); err != nil {
			return segment.StoredProgress{}, fmt.Errorf("what segment %q of thread %s stored cannot be read (is its "+
				"codec configured?): %w", req.ActivityID, req.Thread, err)
		}
		out.Known = true
	}
	return out, nil
}

// begun counts the executions of an activity that a worker began.
func begun(a *workflowpb.PendingActivityInfo) int32 {
	switch a.GetState() {
	case enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_PAUSED:
		return a.GetAttempt() - 1 // this one waits for a worker
	}
	return a.GetAttempt()
}
