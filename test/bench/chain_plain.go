package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The hand-written side: what somebody writes who needs no graph.
const (
	plainWorkflow = "bench.plain"
	plainActivity = "bench.step"
)

// plainStep is the input and the result of a hand-written activity.
type plainStep struct {
	Step int    `json:"step"`
	Note string `json:"note"`
}

func registerPlain(r worker.Registry, c client.Client) {
	r.RegisterWorkflowWithOptions(runBeatWorkflow, workflow.RegisterOptions{Name: beatWorkflow})
	r.RegisterActivityWithOptions(beats(c), activity.RegisterOptions{Name: beatActivity})
	r.RegisterWorkflowWithOptions(runPlainWorkflow, workflow.RegisterOptions{Name: plainWorkflow})
	r.RegisterActivityWithOptions(runPlainActivity, activity.RegisterOptions{Name: plainActivity})
}

// plainActivityOptions are those that Superstep gives its own activities.
func plainActivityOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 365 * 24 * time.Hour,
		HeartbeatTimeout:    2 * time.Second,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second,
		},
	}
}

// runPlainWorkflow executes activities one after the other.
func runPlainWorkflow(ctx workflow.Context, steps int, note string) error {
	ctx = workflow.WithActivityOptions(ctx, plainActivityOptions())
	for i := range steps {
		var out plainStep
		if err := workflow.ExecuteActivity(ctx, plainActivity, plainStep{Step: i, Note: note}).Get(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}

func runPlainActivity(_ context.Context, in plainStep) (plainStep, error) { return in, nil }
