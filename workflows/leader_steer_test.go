package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"superstep.dev/activities"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// TestAPlanWaitsForItsApproval: nothing of it runs before, a decision on another plan is refused without an event.
func TestAPlanWaitsForItsApproval(t *testing.T) {
	t.Parallel()
	c := newCrew(t, planOf(fiveNodes...), numbers())
	c.lead()
	run := c.begin(protocol.LeaderInput{Job: job.Job{Policy: job.Policy{Approve: "all"}}})
	v := c.until("the plan", func(v job.View) bool { return v.Phase == job.PhaseApproving })
	c.settled(run.GetID())
	events := len(c.history(run.GetID()).Events)
	if _, err := c.tells(protocol.UpdateJobPlan, job.Decision{PlanVersion: v.PlanVersion + 1, Verdict: "approve"}); errorKind(err) != protocol.ErrTypeJobRefused {
		t.Errorf("another plan was approved: %v", err)
	}
	c.settled(run.GetID())
	if now := len(c.history(run.GetID()).Events); now != events || len(c.attempts()) != 0 {
		t.Errorf("refused, it has %d events instead of %d, and began %v", now, events, c.attempts())
	}
	if _, err := c.tells(protocol.UpdateJobPlan, job.Decision{PlanVersion: v.PlanVersion, Verdict: "approve", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	c.ends(run, job.StatusFinished)
}

// TestAnAttemptOutOfTime is told to end; one that does not is made to, and is tried again with the reason.
func TestAnAttemptOutOfTime(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"ends when told", "does not listen"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			t.Cleanup(func() { close(over) })
			c := newCrew(t, planOf("slow worker"), map[string]expertFunc{"worker": func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
				if a.Attempt > 1 {
					return success("in time")
				}
				if how == "ends when told" {
					<-ctx.Done()
					return job.WorkflowMessage{}, context.Cause(ctx)
				}
				<-over
				return success("too late")
			}})
			c.lead()
			run := c.begin(protocol.LeaderInput{Grace: 500, Job: job.Job{Policy: job.Policy{AttemptTimeout: steady}}})
			b := c.ends(run, job.StatusFinished)
			if tries := c.told("slow"); len(tries) != 2 || !strings.Contains(strings.Join(tries[1].Lessons, ""), "timed out") || made(b)[0] != "in time" {
				t.Errorf("it was told %+v, and made %q", tries, made(b))
			}
		})
	}
}

// TestAnExpertThatLies counts as one that failed, with what is wrong as its lesson.
func TestAnExpertThatLies(t *testing.T) {
	t.Parallel()
	for lie, m := range map[string]job.WorkflowMessage{
		"no status":   {Status: "GREAT", Output: "x"},
		"the output":  {Status: job.Success, Output: strings.Repeat("x", job.MaxOutput+1)},
		"no more":     {Status: job.ExecutionError, Lesson: strings.Repeat("x", job.MaxNote+1)},
		"depends on":  {Status: job.InputDataError, Blames: []string{"nobody"}},
		"less than":   {Status: job.Success, Usage: job.Usage{Tokens: -1}},
		"20":          {Status: job.Success, Artifacts: make([]job.Artifact, 21)},
		"on the moon": {Status: job.ExecutionError, Evaluation: "it is on the moon"},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, planOf("only worker"), map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
				if a.Attempt > 1 {
					return success("the truth")
				}
				return m, nil
			}})
			c.lead()
			b := c.ends(c.begin(protocol.LeaderInput{}), job.StatusFinished)
			if tries := c.told("only"); len(tries) != 2 || made(b)[0] != "the truth" || len(tries[1].Lessons) != 1 {
				t.Errorf("it was told %+v", tries)
			}
		})
	}
}

// TestLongOutputsGoByReference: the leader's history does not grow with them, and whoever reads one gets all of it.
func TestLongOutputsGoByReference(t *testing.T) {
	t.Parallel()
	const long = 800 << 10
	c := newCrew(t, planOf("long worker", "a worker long", "b worker long"), map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if strings.HasSuffix(a.SubJob, "-long") {
			return success(strings.Repeat("x", long))
		}
		return success(fmt.Sprint(len(a.Inputs[0].Text)))
	}})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	b := c.ends(run, job.StatusFinished)
	if got, want := made(b), []string{fmt.Sprint(long), fmt.Sprint(long)}; !slices.Equal(got, want) {
		t.Errorf("the answer is %q", got)
	}
	size := 0
	for _, e := range c.history(run.GetID()).Events {
		size += e.Size()
	}
	if size > 64<<10 {
		t.Errorf("the leader's history has %d bytes", size)
	}
	lost := job.Reference{Thread: job.AttemptThread(c.id, "p1-long", 1), RunID: "5dc2702a-0000-4000-8000-000000000000", SHA256: "00"}
	if problem := c.reads(lost); !strings.Contains(problem, "is lost") {
		t.Errorf("a reference to nothing: %s", problem)
	}
}

// reads reads an output as an expert does, and returns what is wrong with it.
func (c *crew) reads(ref job.Reference) string {
	problem := ""
	other := newCrew(c.t, planOf("only worker"), map[string]expertFunc{"worker": func(ctx context.Context, _ job.Assignment) (job.WorkflowMessage, error) {
		_, err := activities.OutputsFrom(ctx).Read(ctx, ref)
		problem = fmt.Sprint(err)
		return success("")
	}})
	other.lead()
	other.ends(other.begin(protocol.LeaderInput{}), job.StatusFinished)
	return problem
}

// TestB1AWorkerIsReplacedMidJob: another one goes on, and nothing that had finished runs again (B1).
func TestB1AWorkerIsReplacedMidJob(t *testing.T) {
	t.Parallel()
	g := newHeld()
	c := newCrew(t, planOf("first worker", "middle gate first", "end worker middle"), map[string]expertFunc{"gate": g.wait,
		"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) { return success(a.SubJob) }})
	stop := c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-g.began
	go stop()
	close(g.open)
	c.lead()
	c.ends(run, job.StatusFinished)
	if len(c.told("first")) != 1 || len(c.told("end")) != 1 || len(c.asked) != 1 {
		t.Errorf("it did %v", c.attempts())
	}
}
