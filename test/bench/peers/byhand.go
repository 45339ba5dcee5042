package main

import (
	"context"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// floorDoer does a workload by hand, over a connection.
type floorDoer func(ctx context.Context, c client.Client, w *workload, id string, turn int) error

// floors are the hand-written programs by kind, with what each can do; what is done while workers are killed is in crew.go.
var floors = []struct {
	kind string
	can  func(*workload) bool
	do   floorDoer
}{
	{"activities", func(w *workload) bool { return !w.asks && w.turn == 0 && w.graph != callsGraph }, floorRun(activitiesFlow)},
	{"heartbeats", func(w *workload) bool { return w.graph == chainGraph || w.graph == fanGraph }, floorRun(heartbeatsFlow)},
	{"local", func(*workload) bool { return true }, floorLocal},
}

// byHand is how the author of a workflow does a workload.
func byHand(c client.Client, do floorDoer) doer {
	return func(ctx context.Context, w *workload, id string, turn int) (time.Duration, error) {
		return atOnce(w.atOnce, id, func(id string) error { return do(ctx, c, w, id, turn) })
	}
}

// floorStart is how a hand-written run starts.
func floorStart(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: floorQueue, WorkflowTaskTimeout: 3 * time.Second,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}
}

func (w *workload) byHand() floorWork {
	f := floorWork{Graph: w.graph, Steps: w.steps, Note: runNote}
	f.Texts, _ = w.input["texts"].([]string)
	return f
}

// floorRun starts a workflow and waits for its result.
func floorRun(flow string) floorDoer {
	return func(ctx context.Context, c client.Client, w *workload, id string, turn int) error {
		run, err := c.ExecuteWorkflow(ctx, floorStart(id), flow, w.byHand())
		if err != nil {
			return err
		}
		var out floorResult
		if err := run.Get(ctx, &out); err != nil {
			return err
		}
		return wrongStep(out.Step, w.step(turn))
	}
}

// floorLocal starts a run and waits until it rests with one call, and answers or takes a turn with another one.
func floorLocal(ctx context.Context, c client.Client, w *workload, id string, turn int) error {
	update := client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: restUpdate, WaitForStage: client.WorkflowUpdateStageCompleted}
	flow, in := localFlow, any(w.byHand())
	if w.turn > 0 {
		update.UpdateName, update.Args = turnUpdate, []any{text(turn)}
		flow, in = talkFlow, []string{}
	}
	var out floorResult
	var handle client.WorkflowUpdateHandle
	var err error
	if w.turn > 0 && turn > 1 {
		handle, err = c.UpdateWorkflow(ctx, update)
	} else {
		handle, err = c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: c.NewWithStartWorkflowOperation(floorStart(id), flow, in), UpdateOptions: update,
		})
	}
	if err == nil {
		err = handle.Get(ctx, &out)
	}
	if err == nil && w.asks {
		update.UpdateName, update.Args = answerUpdate, []any{true}
		if handle, err = c.UpdateWorkflow(ctx, update); err == nil {
			err = handle.Get(ctx, &out)
		}
	}
	if err != nil {
		return err
	}
	return wrongStep(out.Step, w.step(turn))
}
