package cron

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Workflow is the type of the workflow that a cron starts each time that it comes due.
const Workflow = "superstep.cron_run"

// The activities of a cron.
const (
	activityThread = "superstep.cron.thread"
	activityRun    = "superstep.cron.run"
)

// Server is what asks for runs.
type Server interface {
	// CronThread makes the thread of one run, unless it is there.
	CronThread(ctx context.Context, c Cron, thread string) error
	// CronRun asks for one run on a thread. That it is asked for twice under one id changes nothing. A refusal that stays is a
	// non-retryable application error.
	CronRun(ctx context.Context, c Cron, thread, run string) error
}

// Register makes a worker ask for the runs that come due.
func Register(w worker.Registry, s Server) {
	w.RegisterWorkflowWithOptions(Ask, workflow.RegisterOptions{Name: Workflow})
	w.RegisterActivityWithOptions(s.CronThread, activity.RegisterOptions{Name: activityThread})
	w.RegisterActivityWithOptions(s.CronRun, activity.RegisterOptions{Name: activityRun})
}

// patience is how long a run is tried for where no worker serves its graph, or the Temporal server is busy. What comes due meanwhile
// is left out.
const patience = time.Hour

// Ask asks for one run of a cron. Its own run id is the run's, so the run is asked for once. The thread is made in a step before it: a
// thread that was deleted behind its run is not made again.
func Ask(ctx workflow.Context, c Cron) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: patience,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second}})
	run := workflow.GetInfo(ctx).FirstRunID
	var thread string
	if c.Thread != nil {
		thread = *c.Thread
	} else {
		thread = uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String()
		if err := workflow.ExecuteActivity(ctx, activityThread, c, thread).Get(ctx, nil); err != nil {
			return err
		}
	}
	return workflow.ExecuteActivity(ctx, activityRun, c, thread, run).Get(ctx, nil)
}
