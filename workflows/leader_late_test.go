package workflows_test

import (
	"context"
	"slices"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// heldBackAtOnce is a leader's run that starts nothing more as soon as something is under way.
var heldBackAtOnce = &protocol.ContinueAt{HoldEvents: 1}

// TestAJobHeldBackEndsLateAttempts: time passes also for attempts of a run that starts none any more. One whose worker is gone hears of
// nothing, and is ended; the job goes on with another.
func TestAJobHeldBackEndsLateAttempts(t *testing.T) {
	t.Parallel()
	c := newCrew(t, planOf("only away"), map[string]expertFunc{"away": func(context.Context, job.Assignment) (job.WorkflowMessage, error) { return success("done") }})
	away := *c.rig
	away.queue += "-away"
	c.queues["away"] = away.queue
	c.lead()
	run := c.begin(protocol.LeaderInput{Grace: 500, ContinueAt: heldBackAtOnce, Job: job.Job{Policy: job.Policy{AttemptTimeout: steady}}})
	c.until("another attempt", func(v job.View) bool { return len(v.SubJobs) == 1 && v.SubJobs[0].Attempts == 2 })
	first, err := c.client.DescribeWorkflowExecution(c.ctx, job.AttemptThread(c.id, "p1-only", 1), "")
	if status := first.GetWorkflowExecutionInfo().GetStatus(); err != nil || status != enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED {
		t.Errorf("the first attempt is %s: %v", status, err)
	}
	away.work(c.expertGraph("away"))
	if got := made(c.ends(run, job.StatusFinished)); !slices.Equal(got, []string{"done"}) {
		t.Errorf("it made %q, in %v", got, c.attempts())
	}
}

// TestAJobHeldBackHasManyLimits: that one attempt ran out of time does not keep the next one from it.
func TestAJobHeldBackHasManyLimits(t *testing.T) {
	t.Parallel()
	listens := func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if a.Attempt == 1 {
			<-ctx.Done()
			return job.WorkflowMessage{}, context.Cause(ctx)
		}
		return success("in time")
	}
	c := newCrew(t, planOf("a short", "b long"), map[string]expertFunc{"short": listens, "long": listens})
	c.limits["short"], c.limits["long"] = steady/2, steady
	c.lead()
	b := c.ends(c.begin(protocol.LeaderInput{ContinueAt: heldBackAtOnce}), job.StatusFinished)
	if len(c.told("a")) != 2 || len(c.told("b")) != 2 || len(made(b)) != 2 {
		t.Errorf("it made %q, in %v", made(b), c.attempts())
	}
}
