package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/tracing"
	"superstep.dev/job"
)

const (
	// planTimeout bounds one call of a planner; the activity's own timeout is longer.
	planTimeout = 10 * time.Minute
	// maxPlanCalls is how often a planner is called that fails on the way to an answer.
	maxPlanCalls = 10
	// The wait before the next such call is doubled each time.
	firstPlanWait, longestPlanWait = time.Second, time.Minute
	// maxPlanBytes bounds a plan as it is stored.
	maxPlanBytes = 1800 << 10
	maxPlanError = 4 << 10
	// PlanFailedType is the application error of a planner that could not be asked.
	PlanFailedType = "superstep.PlanFailed"
)

// Plan is the activity that asks a planner, with all inputs whole. What the planner says is a reply, also when it is no plan. When it
// cannot be asked it is asked again, after a wait, and given up after 10 failures, at once when the error says so: by
// Permanent() bool, or with the wait of its NextRetryDelay() time.Duration.
func (n *Nodes) Plan(ctx context.Context, call job.PlanCall) (job.PlanReply, error) {
	a, err := n.apart(ctx)
	if err != nil {
		return job.PlanReply{}, err
	}
	defer a.free()
	planner := n.planners[call.Leader]
	if planner == nil {
		return job.PlanReply{}, a.elsewhere(fmt.Errorf("this worker does not serve the leader %q", call.Leader))
	}
	if a.isGivenUp() {
		return job.PlanReply{}, planFailed(fmt.Errorf("%d workers in a row were lost while it was being asked", graphadapter.MostLosses))
	}
	held := context.WithValue(a.held, outputsKey{}, n.outputsOf(a.info.Namespace))
	held, told := a.traces(held, n.tracer, call.Trace, tracing.PlanName, tracing.LeaderKey.String(call.Leader), tracing.JobKey.String(call.Request.Job.ID))
	draft, err := plan(held, planner, call.Request)
	told("done", err)
	var bad *job.BadPlanError
	switch {
	case err == nil:
		return planReply(draft), nil
	case a.held.Err() != nil:
		return job.PlanReply{}, a.stopped(err)
	case errors.As(err, &bad):
		return job.PlanReply{Bad: bad, Usage: draft.Usage}, nil
	}
	return job.PlanReply{}, a.askAgain(err)
}

// plan asks a planner. One that panics, or takes too long, could not be asked.
func plan(ctx context.Context, planner job.Planner, req job.PlanRequest) (draft job.Draft, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, planTimeout, fmt.Errorf("no plan within %v", planTimeout))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the planner panicked: %v", p)
		}
	}()
	outputs := OutputsFrom(ctx)
	if err := outputs.Fill(ctx, req.Inputs); err != nil {
		return job.Draft{}, err
	}
	if r := req.Report; r != nil && r.Output == "" && r.Stored != nil {
		if r.Output, err = outputs.Read(ctx, *r.Stored); err != nil {
			return job.Draft{}, err
		}
	}
	return planner.Plan(ctx, req)
}

func planReply(draft job.Draft) job.PlanReply {
	text, err := json.Marshal(draft)
	if err != nil || len(text) > maxPlanBytes {
		return job.PlanReply{Usage: draft.Usage,
			Bad: &job.BadPlanError{Problem: fmt.Sprintf("it takes %d bytes, the most is %d: write less", len(text), maxPlanBytes)}}
	}
	return job.PlanReply{Draft: &draft, Usage: draft.Usage}
}

// askAgain ends a call that failed on the way. It is on record before, so that lost workers do not count.
func (a *apart) askAgain(err error) error {
	wait := min(firstPlanWait<<(a.task.Attempt()-1), longestPlanWait)
	var later interface{ NextRetryDelay() time.Duration }
	if errors.As(err, &later) && later.NextRetryDelay() > 0 {
		wait = later.NextRetryDelay()
	}
	var final interface{ Permanent() bool }
	var lost *OutputError
	var tooMuch *TooMuchError
	if a.task.Attempt() >= maxPlanCalls || errors.As(err, &final) && final.Permanent() || errors.As(err, &lost) || errors.As(err, &tooMuch) {
		return planFailed(err)
	}
	text := clip.Text(err.Error(), maxPlanError)
	recorded := a.task.Fail(a.ctx, wait, &pregel.NodeError{Type: PlanFailedType, Message: text})
	if again := (*host.RetryError)(nil); errors.As(recorded, &again) {
		return retryIn(again.After, text)
	}
	return temporal.NewApplicationErrorWithCause("the failed call of the planner could not be recorded",
		graphadapter.NodeStoppedType, recorded)
}

func planFailed(err error) error {
	return temporal.NewNonRetryableApplicationError("the planner cannot be asked: "+clip.Text(err.Error(), maxPlanError), PlanFailedType, nil)
}

// End is the activity that terminates an attempt which does not end when it is told to.
func (n *Nodes) End(ctx context.Context, call job.EndCall) error {
	err := n.client.TerminateWorkflow(ctx, call.Thread, "", call.Reason)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil
	}
	return err
}
