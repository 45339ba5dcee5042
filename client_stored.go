package superstep

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// storedResult reads the result of a leader's expert where its run stored it.
func (c *Client) storedResult(ctx context.Context, last *lastRun) (protocol.GraphResult, error) {
	record, err := c.stored(ctx, last.thread, last.runID, func(r protocol.ExpertRecord) bool { return r.Result != nil })
	if err != nil {
		return protocol.GraphResult{}, c.explain(err, last.graph, last.thread)
	}
	return *record.Result, nil
}

// storedMessage reads what a leader's expert said at the end of an attempt that has finished.
func (c *Client) storedMessage(ctx context.Context, thread, runID string) (job.WorkflowMessage, error) {
	record, err := c.stored(ctx, thread, runID, func(r protocol.ExpertRecord) bool { return r.Message != nil })
	if err != nil {
		return job.WorkflowMessage{}, c.explain(err, "", thread)
	}
	return *record.Message, nil
}

// stored reads what an expert's run stored in its history, right before its last event.
func (c *Client) stored(ctx context.Context, thread, runID string, is func(protocol.ExpertRecord) bool) (record protocol.ExpertRecord, err error) {
	err = c.tail.Stored(ctx, thread, runID, func(payloads *commonpb.Payloads) (bool, error) {
		record = protocol.ExpertRecord{}
		err := c.decode(payloads, &record)
		return is(record), err
	})
	return record, err
}
