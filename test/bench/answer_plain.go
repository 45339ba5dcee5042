package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The hand-written side of an answer: a workflow that waits for an update, and then executes activities.
const (
	answerPlainQueue    = "bench-answer-plain"
	answerPlainWorkflow = "bench.answered"
	answerPlainUpdate   = "answer"
	answerPlainWaits    = "waits"
)

// registerAnswerPlain registers the workflow; started is told when its last activity begins.
func registerAnswerPlain(r worker.Registry, started chan<- time.Time) {
	r.RegisterWorkflowWithOptions(runAnswerPlain, workflow.RegisterOptions{Name: answerPlainWorkflow})
	r.RegisterActivityWithOptions(func(_ context.Context, in plainStep) (plainStep, error) {
		if in.Step == 1 {
			started <- time.Now()
		}
		return in, nil
	}, activity.RegisterOptions{Name: plainActivity})
}

// runAnswerPlain counts its activities down.
func runAnswerPlain(ctx workflow.Context, steps int) error {
	answered, waits := false, false
	err := workflow.SetUpdateHandler(ctx, answerPlainUpdate, func(workflow.Context, string) error {
		answered = true
		return nil
	})
	if err == nil {
		err = workflow.SetQueryHandler(ctx, answerPlainWaits, func() (bool, error) { return waits, nil })
	}
	if err != nil {
		return err
	}
	waits = true
	if err := workflow.Await(ctx, func() bool { return answered }); err != nil {
		return err
	}
	ctx = workflow.WithActivityOptions(ctx, plainActivityOptions())
	for left := steps; left > 0; left-- {
		if err := workflow.ExecuteActivity(ctx, plainActivity, plainStep{Step: left, Note: chainNote}).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// plainTrip starts the workflow, tells it when it waits, and returns how long it took until the last of its activities began.
func (a *answers) plainTrip(ctx context.Context, id string, steps int) (time.Duration, error) {
	run, err := a.plainRun(ctx, id, steps)
	if err != nil {
		return 0, err
	}
	return a.tellPlain(ctx, run)
}

// answerPlainSteps is how many activities are executed one after the other to see what one takes.
const answerPlainSteps = 10

// plainStep is how long the workflow takes from one of its activities to the next.
func (a *answers) plainStep(ctx context.Context, id string) (time.Duration, error) {
	run, err := a.plainRun(ctx, id, answerPlainSteps)
	if err == nil {
		_, err = a.tellPlain(ctx, run)
	}
	if err != nil {
		return 0, err
	}
	var t trip
	if err := t.read(ctx, a.temporal, id, run.GetRunID()); err != nil {
		return 0, err
	}
	return time.Duration(t.usualStep() * float64(time.Millisecond)), nil
}

// plainRun starts the workflow and returns when it waits.
func (a *answers) plainRun(ctx context.Context, id string, steps int) (client.WorkflowRun, error) {
	run, err := a.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: answerPlainQueue, WorkflowTaskTimeout: 3 * time.Second,
	}, answerPlainWorkflow, steps)
	if err != nil {
		return nil, err
	}
	// The reply comes from a workflow task after the one in which it began to wait.
	_, err = a.temporal.QueryWorkflow(ctx, id, run.GetRunID(), answerPlainWaits)
	return run, err
}

// tellPlain answers the workflow, lets it end, and returns how long it took until the last of its activities began.
func (a *answers) tellPlain(ctx context.Context, run client.WorkflowRun) (time.Duration, error) {
	began := time.Now()
	if _, err := a.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: run.GetID(), RunID: run.GetRunID(),
		UpdateName: answerPlainUpdate, Args: []any{"yes"}, WaitForStage: client.WorkflowUpdateStageCompleted}); err != nil {
		return 0, err
	}
	select {
	case at := <-a.started:
		return at.Sub(began), run.Get(ctx, nil)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
