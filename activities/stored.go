package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
)

// WithConverter makes the worker read stored details with the converter of its client, when that is not Temporal's
// default. It returns n.
func (n *Nodes) WithConverter(c converter.DataConverter) *Nodes {
	n.converter = c
	return n
}

// Stored reads what a segment's heartbeats have stored. The server forgets it when it is asked to cancel an activity that
// no worker has at that moment, so a run asks before.
func (n *Nodes) Stored(ctx context.Context, req graphadapter.StoredRequest) (out graphadapter.StoredProgress, err error) {
	described, err := n.client.DescribeWorkflowExecution(ctx, req.Thread, req.Run)
	if err != nil {
		return out, err
	}
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityId() != req.ActivityID || pending.GetHeartbeatDetails() == nil {
			continue
		}
		if err := n.converter.FromPayloads(pending.GetHeartbeatDetails(), &out.Progress, &out.Record); err != nil {
			return graphadapter.StoredProgress{}, fmt.Errorf("what segment %q of thread %s stored cannot be read (is its "+
				"codec configured?): %w", req.ActivityID, req.Thread, err)
		}
		out.Known = true
	}
	return out, nil
}
