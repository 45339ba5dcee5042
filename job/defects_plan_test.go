package job_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"superstep.dev/job"
)

// More of the defects that defects_test.go is about: those of plans, retries and costs.

// B12: saving the graph wrote every subjob's row again, so that what others had changed meanwhile was lost.
func TestB12ANewPlanLeavesOtherSubJobsAsTheyAre(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}, []string{"b", "loader"}, []string{"c", "loader"}))
	r.begins("p1-a/1", "p1-b/1", "p1-c/1")
	r.report("p1-a/1 JOB_TOO_COMPLICATED_ERROR", "p1-b/1 JOB_TOO_COMPLICATED_ERROR", "p1-c/1 SUCCESS | output=1 | tokens=5")
	r.ready()
	r.plan(draft([]string{"x", "writer"}))
	r.ready()
	r.plan(draft([]string{"y", "writer"}))
	for id, life := range map[string]int{"p1-a": 3, "p1-b": 3, "p1-c": 3, "p2-x": 2, "p3-y": 2} {
		if s := r.subjob(id); s.LifeCycle != life || s.Legacy != (id == "p1-a" || id == "p1-b") {
			t.Errorf("%s: %+v", id, s)
		}
	}
	if s := r.subjob("p1-c"); s.Usage.Tokens != 5 || s.Status != job.StatusFinished {
		t.Fatalf("%+v", s)
	}
}

// B15: joins and forks could not be replaced, several roots or leaves were wired wrongly, an empty plan cut the graph.
func TestB15ReplacingWiresEveryRootAndEveryLeaf(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}, []string{"b", "loader"}, []string{"m", "analyst", "b", "a"},
		[]string{"y", "writer", "m"}, []string{"z", "writer", "a", "m"}))
	r.begins("p1-a/1", "p1-b/1")
	r.report("p1-a/1 SUCCESS", "p1-b/1 SUCCESS")
	r.begins("p1-m/1")
	r.report("p1-m/1 JOB_TOO_COMPLICATED_ERROR")
	r.ready()
	r.plan(job.Draft{}) // nothing is no plan
	if s := r.subjob("p1-m"); s.Legacy {
		t.Fatal("it was replaced by nothing")
	}
	r.ready()
	r.plan(draft([]string{"n1", "loader"}, []string{"n2", "loader"}, []string{"n3", "loader", "n1"}))
	for id, want := range map[string][]string{
		"p2-n1": {"p1-b", "p1-a"}, "p2-n2": {"p1-b", "p1-a"}, "p2-n3": {"p2-n1"},
		"p1-y": {"p2-n2", "p2-n3"}, "p1-z": {"p1-a", "p2-n2", "p2-n3"},
	} {
		if s := r.subjob(id); !slices.Equal(s.Dependencies, want) {
			t.Errorf("%s depends on %v, not %v", id, s.Dependencies, want)
		}
	}
	if tails := r.b.View(r.now).Tails; !slices.Equal(tails, []string{"p1-y", "p1-z"}) {
		t.Fatalf("leaves leak into the answer: %v", tails)
	}
}

// B16: a cycle was not tried again, and left subjobs behind.
func TestB16ACycleCostsAPlanAttemptAndLeavesNothing(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader", "b"}, []string{"b", "loader", "a"}))
	if len(r.b.SubJobs) != 0 || r.b.PlanVersion != 0 {
		t.Fatalf("%d subjobs are left of a plan that cannot be used", len(r.b.SubJobs))
	}
	if w := r.ready(); w.Plan == nil || w.Plan.Lesson != "the plan cannot be used: subjobs depend on each other in a circle: b → a → b" {
		t.Fatalf("%+v", w.Plan)
	}
	r.plan(chain)
	r.begins("p1-a/1")
}

// B17: an error on the way to the planner, the second time, left the job RUNNING for ever.
func TestB17APlannerThatCannotBeReachedFailsTheJob(t *testing.T) {
	r := planned(t, job.Job{}, job.Draft{})
	r.ready()
	r.b.Planned(job.Draft{}, errors.New("connection refused"), r.now)
	r.is(job.StatusFailed)
	if err := r.b.Recover(job.Recover{}, r.now); err != nil {
		t.Fatal(err)
	}
	if w := r.ready(); w.Plan == nil || w.Plan.Attempt != 1 {
		t.Fatalf("%+v", w.Plan)
	}
}

// B18: retries came at once, and nothing bounded how many attempts ran.
func TestB18RetriesWaitAndAttemptsAreBounded(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxParallel: 2}}, draft([]string{"a", "loader"}, []string{"b", "loader"}, []string{"c", "loader"}))
	r.begins("p1-a/1", "p1-b/1")
	r.begins()
	r.report("p1-a/1 EXECUTION_ERROR")
	r.begins("p1-c/1")
	r.now = r.now.Add(time.Hour)
	r.begins() // two are under way
	r.report("p1-b/1 SUCCESS")
	r.begins("p1-a/2")
	for failures, wait := range []time.Duration{2 * time.Second, 4 * time.Second} {
		r.report(attemptText("p1-a", failures+2) + " EXECUTION_ERROR")
		if w := r.ready(); !w.Wake.Equal(r.now.Add(wait)) {
			t.Fatalf("wait until %s, not for %s", w.Wake, wait)
		}
		r.now = r.now.Add(wait)
		r.begins(attemptText("p1-a", failures+3))
	}
}

// B19: what a job cost was never counted, and nothing bounded it.
func TestB19WhatAJobSpendsIsCountedAndBounded(t *testing.T) {
	r := planned(t, job.Job{Budget: job.Budget{Tokens: 100}}, chain)
	r.begins("p1-a/1")
	r.now = r.now.Add(time.Minute)
	r.report("p1-a/1 SUCCESS | tokens=100 | usd=7")
	r.begins()
	v := r.b.View(r.now)
	if v.Phase != job.PhaseOverBudget || v.Spent != (job.Usage{Tokens: 100, MicroUSD: 7}) || v.Duration != time.Minute || v.SubJobs[0].Usage.Tokens != 100 {
		t.Fatalf("%+v", v)
	}
	if err := r.b.Raise(job.Budget{Tokens: 101}, "ann", r.now); err != nil {
		t.Fatal(err)
	}
	r.begins("p1-b/1")
}

// B20: a status that does not exist was a crash within the expert.
func TestB20AnUnknownStatusIsAnExecutionErrorThatSaysSo(t *testing.T) {
	r := planned(t, job.Job{}, chain)
	r.begins("p1-a/1")
	r.report("p1-a/1 success | evaluation=looks good")
	if s := r.subjob("p1-a"); s.Failures != 1 || s.Lessons[0] != `the expert ended with status "success", which means nothing: looks good` {
		t.Fatalf("%+v", s)
	}
}

// B25: experts were known by ids of a process, which meant nothing in the next one.
func TestB25ExpertsAreKnownByName(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "  Data_Loader "}, []string{"b", "WRITER", "a"}))
	_ = r.b // "Data_Loader" is nobody here
	if len(r.b.SubJobs) != 0 {
		t.Fatal("an expert that is not there was assigned")
	}
	r.ready()
	r.plan(draft([]string{"a", " Loader"}, []string{"b", "WRITER", "a"}))
	stored := r.b.Copy()
	w := stored.Ready(r.now)
	if w.Run[0].Expert != "loader" || stored.SubJobs[1].Expert != "writer" {
		t.Fatalf("%+v", w.Run)
	}
}
