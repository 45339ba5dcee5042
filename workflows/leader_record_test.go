package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// everything is a leader whose job has an attempt of each ending: one tried again, one that sends its producer back to
// work, and one that is planned into smaller ones.
func everything(t *testing.T) *crew {
	t.Helper()
	c := newCrew(t, nil, map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		name := a.SubJob[strings.LastIndex(a.SubJob, "-")+1:]
		switch {
		case name == "load" && a.Attempt == 1:
			return job.WorkflowMessage{}, fmt.Errorf("no connection")
		case name == "check" && a.Attempt == 1:
			return job.WorkflowMessage{Status: job.InputDataError, Lesson: "load all of it"}, nil
		case name == "hard":
			return job.WorkflowMessage{Status: job.TooComplicated, Lesson: "halve it"}, nil
		}
		return success(strings.Repeat(fmt.Sprint(name, a.Attempt, " "), 1000))
	}})
	c.planner = func(_ context.Context, req job.PlanRequest) (job.Draft, error) {
		if req.SubJob != nil {
			return draftOf("left worker", "right worker"), nil
		}
		return draftOf("load worker", "check worker load", "hard worker check", "end worker check hard"), nil
	}
	return c
}

// TestRecordJobs records leaders of each kind, and an attempt, as they are to be replayed by every later version.
func TestRecordJobs(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	for _, s := range []struct {
		name string
		in   protocol.LeaderInput
		life func(c *crew, run client.WorkflowRun)
	}{
		{"job", protocol.LeaderInput{}, func(c *crew, run client.WorkflowRun) {
			c.ends(run, job.StatusFinished)
			c.record(job.AttemptThread(c.id, "p1-check", 1), "job-attempt")
		}},
		{"job-approved", protocol.LeaderInput{Job: job.Job{Policy: job.Policy{Approve: "all"}}}, func(c *crew, run client.WorkflowRun) {
			for range 2 {
				v := c.until("the plan", func(v job.View) bool { return v.Phase == job.PhaseApproving })
				if _, err := c.tells(protocol.UpdateJobPlan, job.Decision{PlanVersion: v.PlanVersion, Verdict: "approve"}); err != nil {
					c.t.Fatal(err)
				}
			}
			c.ends(run, job.StatusFinished)
		}},
		{"job-continued", protocol.LeaderInput{ContinueAt: always}, func(c *crew, run client.WorkflowRun) { c.ends(run, job.StatusFinished) }},
	} {
		t.Run(s.name, func(t *testing.T) {
			c := everything(t)
			c.id = s.name
			c.lead()
			s.life(c, c.begin(s.in))
			c.record(job.WorkflowID(c.id), s.name)
		})
	}
	t.Run("job-stopped", func(t *testing.T) {
		g := newHeld()
		c := newCrew(t, planOf("left worker", "right worker"), map[string]expertFunc{"worker": g.wait})
		c.id = "job-stopped"
		c.lead()
		run := c.begin(protocol.LeaderInput{})
		<-g.began
		<-g.began
		if _, err := c.tells(protocol.UpdateJobStop, job.Halt{Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		c.ends(run, job.StatusStopped)
		c.record(run.GetID(), "job-stopped")
	})
}

// TestAChangedBoardStopsTheRun: a leader whose past comes out differently must not go on from there.
func TestAChangedBoardStopsTheRun(t *testing.T) {
	h := recorded(t, "job")
	var begun int
	for _, e := range h.Events {
		if a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); a != nil {
			if begun++; begun == 2 {
				a.WorkflowId = strings.Replace(a.WorkflowId, "/a", "/a9", 1)
			}
		}
	}
	if err := replay(t, h, allGraphs()...); err == nil || !strings.Contains(strings.ToLower(err.Error()), "nondeterminis") {
		t.Errorf("where the board would begin another attempt the replay says %v, want a nondeterminism error", err)
	}
}
