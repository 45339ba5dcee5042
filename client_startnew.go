package superstep

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/workflows/protocol"
)

// startNew starts the first run of a thread as the Temporal client does it, with the interceptors and propagators that it
// was made with. Where a worker of the graph runs on that very client, it has the run at once: it does not go through the
// server's queue first (Temporal's eager start). It fails with a WorkflowExecutionAlreadyStarted when the thread has run.
func (c *Client) startNew(ctx context.Context, thread string, in protocol.GraphInput, memo map[string]string, has protocol.Found) (string, error) {
	options := client.StartWorkflowOptions{
		ID: thread, TaskQueue: c.cfg.TaskQueue, WorkflowTaskTimeout: workflowTaskTimeout,
		// A thread that is not known to have run must really be new.
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		// What Temporal's own screens show beside the type, which is the same for all graphs.
		StaticSummary: "graph " + in.Graph,
		Memo:          map[string]any{},
	}
	for name, value := range memo {
		options.Memo[name] = value
	}
	if has.Lists {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(protocol.AttributeGraph).ValueSet(in.Graph),
			temporal.NewSearchAttributeKeyKeyword(protocol.AttributeStatus).ValueSet(protocol.StatusRunning),
		)
	}
	run, err := c.temporal.ExecuteWorkflow(ctx, options, protocol.GraphWorkflow, in)
	if err != nil {
		return "", err
	}
	return run.GetRunID(), nil
}
