package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// TestB6StopOfAJobAtRest: a job that waits with nothing under way stops at once, and recovered it waits for the same, or
// goes on with what is left.
func TestB6StopOfAJobAtRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy  job.Policy
		budget  job.Budget
		rests   func(job.View) bool
		release func(*crew, job.View) error // what a recovered job still needs; nil for nothing
		did     []string
	}{
		"its plan waits for approval": {
			policy: job.Policy{Approve: "first"},
			rests:  func(v job.View) bool { return v.Phase == job.PhaseApproving },
			release: func(c *crew, v job.View) error {
				_, err := c.tells(protocol.UpdateJobPlan, job.Decision{PlanVersion: v.PlanVersion, Verdict: "approve"})
				return err
			},
			did: []string{"p1-only/1", "p1-only/2"},
		},
		"it waits before another try": {
			policy: job.Policy{RetryWait: time.Hour},
			rests:  func(v job.View) bool { return len(v.SubJobs) == 1 && v.SubJobs[0].Attempts == 1 && !v.SubJobs[0].Open },
			did:    []string{"p1-only/1", "p1-only/2"}, // recovered, it does not wait
		},
		"its budget is spent": {
			budget: job.Budget{Attempts: 1},
			rests:  func(v job.View) bool { return v.Phase == job.PhaseOverBudget },
			release: func(c *crew, _ job.View) error {
				_, err := c.tells(protocol.UpdateJobBudget, protocol.RaiseBudget{Budget: job.Budget{Attempts: 5}})
				return err
			},
			did: []string{"p1-only/1", "p1-only/2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crew := newCrew(t, planOf("only worker"), map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
				if a.Attempt == 1 {
					return job.WorkflowMessage{Status: job.ExecutionError, Lesson: "not yet"}, nil
				}
				return success("done")
			}})
			crew.lead()
			run := crew.begin(protocol.LeaderInput{Job: job.Job{Policy: c.policy, Budget: c.budget}})
			crew.until("rest", c.rests)
			v, err := crew.tells(protocol.UpdateJobStop, job.Halt{Reason: "enough"})
			if err != nil || v.Status != job.StatusStopped {
				t.Fatalf("stopped, it is %s: %v", v.Status, err)
			}
			b := crew.ends(run, job.StatusStopped)
			b.Job.Policy.RetryWait = time.Millisecond // for what is tried behind the recovery
			run = crew.begin(protocol.LeaderInput{Board: b, Recover: &job.Recover{}})
			if c.release != nil {
				if err := c.release(crew, crew.until("rest again", c.rests)); err != nil {
					t.Fatal(err)
				}
			}
			crew.ends(run, job.StatusFinished)
			if got := crew.attempts(); !slices.Equal(got, c.did) || len(crew.asked) != 1 {
				t.Errorf("it did %v, by %d calls of the planner", got, len(crew.asked))
			}
		})
	}
}

// TestALateReportCountsForNothing: an attempt that somebody had replaced says that it has succeeded all the same, and the
// one in its place is what the others get.
func TestALateReportCountsForNothing(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 2)
	c := newCrew(t, planOf("first worker", "slow worker first", "end worker slow"), map[string]expertFunc{
		"worker": func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			if a.SubJob == "p1-slow" && a.Attempt == 1 {
				began <- struct{}{}
				<-ctx.Done() // and it does not give up
				return success("of old input")
			}
			if len(a.Inputs) > 0 {
				return success("made of " + a.Inputs[0].Text)
			}
			return success([]string{"old", "new"}[a.Attempt-1])
		}})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-began
	if _, err := c.tells(protocol.UpdateJobRetry, protocol.RetrySubJob{SubJob: "p1-first", Lesson: "again"}); err != nil {
		t.Fatal(err)
	}
	b := c.ends(run, job.StatusFinished)
	if got := made(b); !slices.Equal(got, []string{"made of made of new"}) {
		t.Errorf("the answer is %q", got)
	}
	if got := c.attempts(); len(got) != 5 || len(c.told("end")) != 1 {
		t.Errorf("it did %v", got)
	}
}
