package activities

import (
	"context"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"superstep.dev/graphadapter/segment"
)

// Stored reads what the heartbeats of activities have stored. The server forgets it when it is asked to cancel an activity
// that no worker has at that moment, so a run asks before.
func (n *Nodes) Stored(ctx context.Context, req segment.StoredRequest) (segment.StoredReply, error) {
	described, err := n.client.DescribeWorkflowExecution(ctx, req.Thread, req.Run)
	if err != nil {
		return segment.StoredReply{}, err
	}
	found, sizes := map[string]segment.Stored{}, map[string]int{}
	for _, pending := range described.GetPendingActivities() {
		id, details := pending.GetActivityId(), pending.GetHeartbeatDetails()
		if !slices.Contains(req.ActivityIDs, id) {
			continue
		}
		one := segment.Stored{Begun: begun(pending), Known: details != nil}
		if err := n.converter.FromPayloads(details, &one.Progress, &one.Record); err != nil {
			return segment.StoredReply{}, fmt.Errorf("what activity %q of thread %s stored cannot be read (is its codec "+
				"configured?): %w", id, req.Thread, err)
		}
		found[id], sizes[id] = one, details.Size()
	}
	return req.Page(found, sizes), nil
}

// begun counts the executions of an activity that a worker began.
func begun(a *workflowpb.PendingActivityInfo) int32 {
	switch a.GetState() {
	case enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_PAUSED:
		return a.GetAttempt() - 1 // this one waits for a worker
	}
	return a.GetAttempt()
}
