package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Publish hands an emission to those who listen while its node runs.
type Publish func(context.Context, graphadapter.LiveEmission) error

// publishTimeout bounds how long one emission may keep its node waiting.
const publishTimeout = 250 * time.Millisecond

// Publishing makes the nodes publish what they emit, as they do.
func (n *Nodes) Publishing(publish Publish) *Nodes {
	n.publish = publish
	return n
}

// live returns what publishes the emissions of this execution, nil when nobody wants them. After a failure the rest of
// the execution is not published: listeners take it from the result.
func (e *execution) live(ctx context.Context, publish Publish) func(pregel.Emission) {
	if publish == nil {
		return nil
	}
	return publishing(ctx, publish, e.info, e.req.Thread, e.req.Task.Key())
}

func publishing(ctx context.Context, publish Publish, info activity.Info, thread, task string) func(pregel.Emission) {
	next, failed := 0, false
	return func(emitted pregel.Emission) {
		if failed {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		err := publish(bounded, graphadapter.LiveEmission{
			Thread: thread, Run: info.WorkflowExecution.RunID, Task: task, Scheduled: info.ScheduledTime,
			Execution: info.Attempt, Sequence: next, Emission: emitted,
		})
		next++
		if err != nil {
			failed = true
			activity.GetLogger(ctx).Warn("what the node emits comes with its result only", "error", err)
		}
	}
}
