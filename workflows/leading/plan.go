package leading

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/job"
)

const (
	// planRunTimeout is longer than the activity gives the planner. planHeartbeat is after what time without a sign of life
	// another worker asks it.
	planRunTimeout = 11 * time.Minute
	planHeartbeat  = 5 * time.Second
)

// planning is a call of the planner.
type planning struct {
	cancel workflow.CancelFunc
	over   bool
	draft  job.Draft
	err    error
}

// ask calls the planner.
func (l *lead) ask(req job.PlanRequest) {
	ctx, cancel := workflow.WithCancel(l.life)
	p := &planning{cancel: cancel}
	l.plan = p
	about := "the job"
	if req.SubJob != nil {
		about = "subjob " + req.SubJob.ID
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: planRunTimeout, HeartbeatTimeout: planHeartbeat, WaitForCancellation: true,
		// How often a planner is asked is counted by the activity: the server's count has lost workers in it.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second},
		Summary:     fmt.Sprintf("plan %s, attempt %d", about, req.Attempt),
	})
	future := workflow.ExecuteActivity(ctx, job.PlanActivity, job.PlanCall{Leader: l.in.Leader, Request: req})
	workflow.Go(l.life, func(ctx workflow.Context) {
		var reply job.PlanReply
		err := future.Get(ctx, &reply)
		p.draft, p.err = planned(reply, err)
		p.over = true
	})
}

// planned is a planner's answer as the board takes it.
func planned(reply job.PlanReply, err error) (job.Draft, error) {
	none := job.Draft{Usage: reply.Usage}
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &application):
		return none, errors.New(application.Message())
	case err != nil:
		return none, err
	case reply.Bad != nil:
		return none, reply.Bad
	case reply.Draft == nil:
		return none, errors.New("the planner's worker gave no answer: it may be of another version")
	}
	return *reply.Draft, nil
}
