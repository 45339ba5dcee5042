package main

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
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

// The hand-written side of fused supersteps: one activity that stores each step by a heartbeat and waits until it is
// stored.
const (
	beatWorkflow = "bench.beats"
	beatActivity = "bench.beat"
)

func runBeatWorkflow(ctx workflow.Context, steps int, note string) error {
	ctx = workflow.WithActivityOptions(ctx, plainActivityOptions())
	return workflow.ExecuteActivity(ctx, beatActivity, plainStep{Step: steps, Note: note}).Get(ctx, nil)
}

// beats makes the activity. It calls the server directly: the SDK's own heartbeat does not wait.
func beats(c client.Client) func(context.Context, plainStep) error {
	return func(ctx context.Context, in plainStep) error {
		info := activity.GetInfo(ctx)
		for i := range in.Step {
			details, err := converter.GetDefaultDataConverter().ToPayloads(plainStep{Step: i, Note: in.Note})
			if err != nil {
				return err
			}
			if err := beat(ctx, c, info, details); err != nil {
				return err
			}
		}
		return nil
	}
}

func beat(ctx context.Context, c client.Client, info activity.Info, details *commonpb.Payloads) error {
	_, err := c.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
		Namespace: info.Namespace, TaskToken: info.TaskToken, Details: details,
	})
	return err
}
