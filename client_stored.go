package superstep

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"

	"superstep.dev/internal/history"
	"superstep.dev/workflows"
)

// storedResult reads the result of a leader's expert where its run stored it: in its history, right before its last event.
func (c *Client) storedResult(ctx context.Context, last *lastRun) (workflows.GraphResult, error) {
	tail := history.Tail{Service: c.temporal.WorkflowService(), Namespace: c.cfg.Namespace, Converter: c.cfg.DataConverter}
	var record workflows.ExpertRecord
	err := tail.Stored(ctx, last.thread, last.runID, func(payloads *commonpb.Payloads) (bool, error) {
		record = workflows.ExpertRecord{}
		err := c.decode(payloads, &record)
		return record.Result != nil, err
	})
	if err != nil {
		return workflows.GraphResult{}, c.explain(err, last.graph, last.thread)
	}
	return *record.Result, nil
}
