package job_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"superstep.dev/job"
)

// What promises_test.go says, for plans, retries, costs and answers.

// In Chat2Graph, saving the graph wrote every subjob's row again, so that what others had changed meanwhile was lost.
func TestANewPlanLeavesOtherSubJobsAsTheyAre(t *testing.T) {
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

// In Chat2Graph, joins and forks could not be replaced, several roots or leaves were wired wrongly, an empty plan cut the graph.
func TestReplacingWiresEveryRootAndEveryLeaf(t *testing.T) {
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

// In Chat2Graph, a cycle was not tried again, and left subjobs behind.
func TestACycleCostsAPlanAttemptAndLeavesNothing(t *testing.T) {
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

// In Chat2Graph, an error on the way to the planner, the second time, left the job RUNNING for ever.
func TestAPlannerThatCannotBeReachedFailsTheJob(t *testing.T) {
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

// In Chat2Graph, retries came at once, and nothing bounded how many attempts ran.
func TestRetriesWaitAndAttemptsAreBounded(t *testing.T) {
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

// In Chat2Graph, what a job cost was never counted, and nothing bounded it.
func TestWhatAJobSpendsIsCountedAndBounded(t *testing.T) {
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

// A view is as old as the last thing that happened to its job. The time that the job has run since is added, none once it has ended.
func TestAViewAtALaterMoment(t *testing.T) {
	r := planned(t, job.Job{}, chain)
	v := r.b.View(r.now)
	later := v.Until(r.now.Add(time.Minute)).Until(r.now.Add(2 * time.Minute))
	if at := r.now.Add(2 * time.Minute); later.Duration != v.Duration+2*time.Minute || later.Duration != r.b.View(at).Duration {
		t.Fatalf("%+v", later)
	}
	if err := r.b.Fail(job.Halt{Reason: "enough"}, r.now); err != nil {
		t.Fatal(err)
	}
	v = r.b.View(r.now)
	if later := v.Until(r.now.Add(time.Minute)); later.Ended.IsZero() || later.Duration != v.Duration {
		t.Fatalf("%+v", later)
	}
}

// In Chat2Graph, a status that does not exist was a crash within the expert.
func TestAnUnknownStatusIsAnExecutionErrorThatSaysSo(t *testing.T) {
	r := planned(t, job.Job{}, chain)
	r.begins("p1-a/1")
	r.report("p1-a/1 success | evaluation=looks good")
	if s := r.subjob("p1-a"); s.Failures != 1 || s.Lessons[0] != `the expert ended with status "success", which means nothing: looks good` {
		t.Fatalf("%+v", s)
	}
}

// In Chat2Graph, experts were known by ids of a process, which meant nothing in the next one.
func TestExpertsAreKnownByName(t *testing.T) {
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

// In Chat2Graph, the first look at a job that had no plan yet stored an empty one, over a plan that came meanwhile.
func TestLookingBeforeThereIsAPlanKeepsThePlanThatComes(t *testing.T) {
	r := &drive{t: t, b: newBoard(t, job.Job{}), now: start}
	r.ready()
	before := r.b.View(r.now)
	if len(before.SubJobs) != 0 || before.PlanVersion != 0 {
		t.Fatalf("there is a plan already: %+v", before.SubJobs)
	}
	r.plan(chain)
	before.SubJobs = append(before.SubJobs, job.SubJob{DraftSubJob: job.DraftSubJob{ID: "written over it"}}) // what was seen is the reader's own
	if after := r.b.View(r.now); len(after.SubJobs) != 3 || after.PlanVersion != 1 {
		t.Fatalf("the plan is lost: %+v", after.SubJobs)
	}
	r.begins("p1-a/1")
}

// In Chat2Graph, of several last steps one was taken for the result, without a word, and parallel ones ran one after another.
func TestEveryLastSubJobIsPartOfTheAnswerAndBranchesRunAtOnce(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}, []string{"b", "analyst", "a"}, []string{"c", "critic", "a"}))
	r.begins("p1-a/1")
	r.report("p1-a/1 SUCCESS | output=read")
	r.begins("p1-b/1", "p1-c/1")
	r.report("p1-c/1 SUCCESS | output=judged", "p1-b/1 SUCCESS | output=counted")
	r.ready()
	r.is(job.StatusFinished)
	var parts []string
	for _, in := range r.b.Answer() {
		parts = append(parts, in.Text)
	}
	if !slices.Equal(parts, []string{"counted", "judged"}) {
		t.Fatalf("the answer is of %v", parts)
	}
}

// In Chat2Graph, what an expert remembered of a job grew with every attempt, without a bound, and was lost at a restart.
func TestWhatAnAttemptIsToldIsBoundedAndKept(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: 30, RetryWait: time.Millisecond}}, draft([]string{"a", "loader"}))
	most := 0
	for attempt := 1; attempt <= 30; attempt++ {
		r.now = r.now.Add(time.Hour)
		w := r.ready()
		if len(w.Run) != 1 || w.Run[0].Attempt != attempt {
			t.Fatalf("%d: %+v", attempt, w.Run)
		}
		told := w.Run[0].Lessons
		if attempt > 1 && !strings.HasPrefix(told[len(told)-1], fmt.Sprint(attempt-1)) {
			t.Fatalf("attempt %d is not told what came of the one before", attempt)
		}
		most = max(most, len(told))
		r.report(fmt.Sprintf("p1-a/%d EXECUTION_ERROR | lesson=%d%s", attempt, attempt, strings.Repeat(" and more", 40)))
		r.b = r.b.Copy() // another worker goes on
	}
	if most != 8 {
		t.Fatalf("an attempt was told %d lessons", most)
	}
}
