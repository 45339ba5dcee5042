package history

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
)

// Replay runs a run's recorded history through the workflow code itself, which reads what happened far better than a
// second interpretation of events could. register registers the workflows, with a sink that is told of every event.
func (t *Tail) Replay(ctx context.Context, workflowID, runID string, register func(worker.WorkflowRegistry)) error {
	recorded, err := t.All(ctx, workflowID, runID)
	if err != nil {
		return err
	}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: t.Converter})
	if err != nil {
		return err
	}
	register(replayer)
	if err := replayer.ReplayWorkflowHistory(nil, recorded); err != nil {
		return fmt.Errorf("run %s of thread %s cannot be replayed with the graph of this process: %w", runID, workflowID, err)
	}
	return nil
}

// All returns a run's whole history as it is now.
func (t *Tail) All(ctx context.Context, workflowID, runID string) (*historypb.History, error) {
	all := &historypb.History{}
	var token []byte
	for {
		page, err := t.Service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: t.Namespace, NextPageToken: token,
			Execution:              &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
			HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
		})
		if err != nil {
			return nil, err
		}
		all.Events = append(all.Events, page.GetHistory().GetEvents()...)
		if token = page.GetNextPageToken(); len(token) == 0 {
			return all, nil
		}
	}
}
