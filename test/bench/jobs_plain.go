package main

import (
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The hand-written side of a job: a parent that keeps a number of children under way, each of one activity.
const (
	plainParent = "bench.parent"
	plainChild  = "bench.child"
)

func registerChildren(r worker.Registry) {
	r.RegisterWorkflowWithOptions(runPlainParent, workflow.RegisterOptions{Name: plainParent})
	r.RegisterWorkflowWithOptions(runPlainChild, workflow.RegisterOptions{Name: plainChild})
	r.RegisterActivityWithOptions(runPlainActivity, activity.RegisterOptions{Name: plainActivity})
}

func runPlainParent(ctx workflow.Context, children, parallel int) error {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	slots := workflow.NewSemaphore(ctx, int64(parallel))
	ended, failed := workflow.NewWaitGroup(ctx), error(nil)
	for i := range children {
		if err := slots.Acquire(ctx, 1); err != nil {
			return err
		}
		ended.Add(1)
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id + "/" + strconv.Itoa(i),
			WaitForCancellation: true, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL})
		future := workflow.ExecuteChildWorkflow(child, plainChild, plainStep{Step: i, Note: chainNote})
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer ended.Done()
			defer slots.Release(1)
			var out plainStep
			if err := future.Get(ctx, &out); err != nil {
				failed = err
			}
		})
	}
	ended.Wait(ctx)
	return failed
}

func runPlainChild(ctx workflow.Context, in plainStep) (out plainStep, err error) {
	ctx = workflow.WithActivityOptions(ctx, plainActivityOptions())
	err = workflow.ExecuteActivity(ctx, plainActivity, in).Get(ctx, &out)
	return out, err
}
