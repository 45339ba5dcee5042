package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// floorDoer does a workload by hand, over a connection.
type floorDoer func(ctx context.Context, c client.Client, w *workload, id string, in fields, turn int) error

// floors are the hand-written programs by kind, with what each can do; what is done while workers are killed is in crew.go.
var floors = []struct {
	kind string
	can  func(*workload) bool
	do   floorDoer
}{
	{"activities", func(w *workload) bool { return !w.asks && !w.talks() && w.graph != callsGraph && w.graph != largeGraph }, floorRun(activitiesFlow)},
	{"heartbeats", func(w *workload) bool { return w.graph == chainGraph || w.graph == fanGraph }, floorRun(heartbeatsFlow)},
	{"local", func(w *workload) bool { return w.graph != largeGraph }, floorLocal(false)},
	{"stored", func(w *workload) bool { return w.asks }, floorLocal(true)},
}

// byHand is how the author of a workflow does a workload.
func byHand(c client.Client, do floorDoer) doer {
	return func(ctx context.Context, w *workload, id string, turn int) (time.Duration, error) {
		in := w.inputOf(id, turn)
		return atOnce(w.atOnce, id, func(id string) error { return do(ctx, c, w, id, in, turn) })
	}
}

// floorStart is how a hand-written run starts.
func floorStart(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: floorQueue, WorkflowTaskTimeout: 3 * time.Second,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}
}

func (w *workload) byHand(in fields) floorWork {
	f := floorWork{Graph: w.graph, Steps: w.steps, Note: runNote}
	f.Texts, _ = in["texts"].([]string)
	return f
}

// floorRun starts a workflow and waits for its result.
func floorRun(flow string) floorDoer {
	return func(ctx context.Context, c client.Client, w *workload, id string, in fields, turn int) error {
		return floorGet(ctx, c, floorStart(id), flow, w, in, turn)
	}
}

func floorGet(ctx context.Context, c client.Client, o client.StartWorkflowOptions, flow string, w *workload, in fields, turn int) error {
	run, err := c.ExecuteWorkflow(ctx, o, flow, w.byHand(in))
	if err != nil {
		return err
	}
	var out floorResult
	if err := run.Get(ctx, &out); err != nil {
		return fmt.Errorf("%w%s", err, whyTerminated(ctx, c, o.ID))
	}
	return wrongStep(out.Step, w.step(turn))
}

// whyTerminated is what the server says of a run that it ended, "" of others: a history that is too large, for instance.
func whyTerminated(ctx context.Context, c client.Client, id string) string {
	events := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return ""
		}
		if reason := event.GetWorkflowExecutionTerminatedEventAttributes().GetReason(); reason != "" {
			return ": " + reason
		}
	}
	return ""
}

// floorLocal does everything within workflow tasks; with stored, a step behind an answer does not begin before the one before it is stored.
func floorLocal(stored bool) floorDoer {
	return func(ctx context.Context, c client.Client, w *workload, id string, in fields, turn int) error {
		flow, work := localFlow, w.byHand(in)
		if w.talks() {
			flow = talkFlow
		}
		work.Stored = stored
		return floorUpdates(ctx, c, floorStart(id), flow, w, work, turn)
	}
}

// floorUpdates starts a run and waits until it rests with one call, and answers or takes a turn with another one.
func floorUpdates(ctx context.Context, c client.Client, o client.StartWorkflowOptions, flow string, w *workload, work floorWork, turn int) error {
	update := client.UpdateWorkflowOptions{WorkflowID: o.ID, UpdateName: restUpdate, WaitForStage: client.WorkflowUpdateStageCompleted}
	begins := any(work)
	if w.talks() {
		update.UpdateName, update.Args = turnUpdate, []any{work.Texts[0]}
		begins = []string{}
	}
	var out floorResult
	var handle client.WorkflowUpdateHandle
	var err error
	if w.talks() && turn > 1 {
		handle, err = c.UpdateWorkflow(ctx, update)
	} else {
		handle, err = c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: c.NewWithStartWorkflowOperation(o, flow, begins), UpdateOptions: update,
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
