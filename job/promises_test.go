package job_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"superstep.dev/job"
)

// Chat2Graph's leader does not do all that its documents promise. The tests here and in promises_plan_test.go are about what a
// board decides: each says what went wrong there, and shows that it cannot happen here.

// In Chat2Graph, a subjob that was too complicated always crashed the leader.
func TestATooComplicatedSubJobIsPlannedAndTheJobFinishes(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}))
	r.begins("p1-a/1")
	r.report("p1-a/1 JOB_TOO_COMPLICATED_ERROR | output=half | evaluation=too much | lesson=split it")
	w := r.ready()
	if w.Plan == nil || w.Plan.SubJob.ID != "p1-a" || w.Plan.Report.Output != "half" || w.Plan.Report.Lesson != "split it" || w.Plan.Report.Evaluation != "too much" {
		t.Fatalf("the planner is not told why: %+v", w.Plan)
	}
	r.plan(draft([]string{"x", "loader"}, []string{"y", "writer", "x"}))
	r.begins("p2-x/1")
	r.report("p2-x/1 SUCCESS")
	r.begins("p2-y/1")
	r.report("p2-y/1 SUCCESS | output=all of it")
	r.is(job.StatusFinished)
	if s := r.subjob("p1-a"); !s.Legacy || s.Status == job.StatusRunning {
		t.Fatalf("what was replaced is %s", s.Status)
	}
	if p := r.subjob("p2-x"); p.Parent != "p1-a" || p.LifeCycle != 2 || p.PlanVersion != 2 {
		t.Fatalf("lineage is lost: %+v", p)
	}
}

// In Chat2Graph, an assigned expert, which every planned subjob has, was taken for a preset one: nothing was planned again, the same
// subjob was made once more for the same expert.
func TestAnAssignedExpertDoesNotKeepASubJobFromBeingPlanned(t *testing.T) {
	r := &drive{t: t, b: newBoard(t, job.Job{Expert: "loader"}), now: start}
	r.begins("p1-job/1")
	r.report("p1-job/1 JOB_TOO_COMPLICATED_ERROR")
	if w := r.ready(); w.Plan == nil || w.Plan.Job.Expert != "" {
		t.Fatalf("%+v", w.Plan)
	}
	r.plan(job.Draft{SubJobs: []job.DraftSubJob{{ID: "clone", Expert: "loader", Goal: "a goal"}}})
	if w := r.ready(); w.Plan == nil || w.Plan.Attempt != 2 || w.Plan.Lesson == "" {
		t.Fatalf("a clone is accepted: %+v", w.Plan)
	}
}

// In Chat2Graph, an input data error ran nothing again, lost the lesson, looped for ever on roots, and crashed the second time.
func TestAnInputDataErrorRunsTheProducerAgainWithTheLesson(t *testing.T) {
	r := planned(t, job.Job{}, chain)
	r.begins("p1-a/1")
	r.report("p1-a/1 SUCCESS | output=old")
	r.begins("p1-b/1")
	for attempt, output := range []string{"new", "newer"} {
		r.report(attemptText("p1-b", attempt+1) + " INPUT_DATA_ERROR | lesson=not " + output)
		w := r.ready()
		if len(w.Run) != 1 || w.Run[0].SubJob != "p1-a" || !slices.Contains(w.Run[0].Lessons, "not "+output) {
			t.Fatalf("%+v", w.Run)
		}
		r.report(attemptText("p1-a", attempt+2) + " SUCCESS | output=" + output)
		if w := r.ready(); w.Run[0].SubJob != "p1-b" || w.Run[0].Inputs[0].Text != output {
			t.Fatalf("%+v", w.Run)
		}
	}
	if s := r.subjob("p1-a"); s.Legacy || s.Status != job.StatusFinished {
		t.Fatalf("the producer is hidden: %+v", s)
	}
	r.report("p1-b/3 INPUT_DATA_ERROR | lesson=no")
	r.is(job.StatusFailed) // and not a loop
}

func TestAComplaintOfARootIsBounded(t *testing.T) {
	r := planned(t, job.Job{}, chain)
	for attempt := 1; r.b.Status == job.StatusRunning; attempt++ {
		if attempt > 4 {
			t.Fatal("a root that complains is tried for ever")
		}
		r.begins(attemptText("p1-a", attempt))
		r.report(attemptText("p1-a", attempt) + " INPUT_DATA_ERROR | lesson=bad")
		r.now = r.now.Add(time.Minute)
	}
	r.is(job.StatusFailed)
}

// In Chat2Graph, a predecessor that had failed counted as done, and its successors ran on the text of its error.
func TestNoSuccessorRunsOnAFailedPredecessor(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: -1}}, diamond)
	r.begins("p1-a/1")
	r.report("p1-a/1 SUCCESS")
	r.begins("p1-b/1", "p1-c/1")
	r.report("p1-b/1 EXECUTION_ERROR | lesson=broken")
	if w := r.ready(); len(w.Run) > 0 || !slices.Equal(w.Cancel, []job.Attempt{{SubJob: "p1-c", Attempt: 1}}) {
		t.Fatalf("%+v", w)
	}
	r.is(job.StatusRunning) // until the sibling has ended
	r.report("p1-c/1 SUCCESS")
	r.begins()
	r.is(job.StatusFailed)
	if s := r.subjob("p1-d"); s.Attempts != 0 {
		t.Fatal("the successor ran")
	}
}

// In Chat2Graph, stop stopped nothing, and successors ran after it.
func TestNothingBeginsAfterAStop(t *testing.T) {
	r := planned(t, job.Job{}, diamond)
	r.begins("p1-a/1")
	if err := r.b.Stop(job.Halt{Reason: "enough", By: "ann"}, r.now); err != nil {
		t.Fatal(err)
	}
	r.is(job.StatusRunning)
	if w := r.ready(); len(w.Cancel) != 1 || len(w.Run) > 0 || w.Done {
		t.Fatalf("%+v", w)
	}
	r.report("p1-a/1 SUCCESS | output=kept")
	if w := r.ready(); len(w.Run) > 0 || !w.Done {
		t.Fatalf("%+v", w)
	}
	r.is(job.StatusStopped)
	if s := r.subjob("p1-a"); s.Status != job.StatusFinished || s.Result == nil {
		t.Fatalf("what finished while the job stopped is lost: %+v", s)
	}
}

// In Chat2Graph, recovering soon after a stop had everything that was left run twice, or merged two plans.
func TestARecoverOverlapsWithNothing(t *testing.T) {
	r := planned(t, job.Job{}, diamond)
	r.begins("p1-a/1")
	if err := r.b.Stop(job.Halt{Reason: "", By: ""}, r.now); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, r.b.Recover(job.Recover{}, r.now), "not_recoverable") // its attempt has not ended
	r.report("p1-a/1 EXECUTION_ERROR")
	if err := r.b.Recover(job.Recover{}, r.now); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, r.b.Recover(job.Recover{}, r.now), "not_recoverable")
	r.begins("p1-a/2")
	r.report("p1-a/1 SUCCESS | output=of the attempt before the stop", "p1-a/2 SUCCESS | output=2")
	if w := r.ready(); w.Run[0].Inputs[0].Text != "2" {
		t.Fatalf("%+v", w.Run)
	}
}

func TestARecoverWhilePlanningMakesOnePlan(t *testing.T) {
	r := &drive{t: t, b: newBoard(t, job.Job{}), now: start}
	r.ready()
	if err := r.b.Stop(job.Halt{Reason: "", By: ""}, r.now); err != nil {
		t.Fatal(err)
	}
	r.plan(chain) // of the call that was asked to end
	r.is(job.StatusStopped)
	if err := r.b.Recover(job.Recover{}, r.now); err != nil {
		t.Fatal(err)
	}
	if w := r.ready(); w.Plan == nil || w.Plan.Attempt != 1 {
		t.Fatalf("%+v", w)
	}
	r.plan(diamond)
	r.plan(chain) // of the old call, late
	if v := r.b.View(r.now); v.Total != 4 {
		t.Fatalf("%d subjobs: plans were merged", v.Total)
	}
}

// In Chat2Graph, what the scheduler did not expect left a job RUNNING for ever. See TestRandomJobs for all the rest.
func TestWhatNobodyExpectsDoesNotKeepAJobRunning(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: -1}}, chain)
	r.begins("p1-a/1")
	r.report("p1-z/1 SUCCESS", "p1-a/7 SUCCESS", "p1-b/1 INPUT_DATA_ERROR", "p1-a/1 MAYBE")
	r.is(job.StatusFailed)
	if w := r.ready(); !w.Done {
		t.Fatal("it is not done")
	}
}

// In Chat2Graph, a job was finished by whoever looked at it, and looking wrote.
func TestLookingChangesNothing(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}))
	r.begins("p1-a/1")
	r.report("p1-a/1 SUCCESS | output=1")
	r.is(job.StatusFinished) // nobody has looked
	before := encoded(t, r.b)
	v := r.b.View(r.now.Add(time.Hour))
	v.SubJobs[0].Goal, v.Tails[0] = "another", "another"
	r.b.Answer()
	r.b.EventsAfter(0)
	if encoded(t, r.b) != before {
		t.Fatal("looking at the board changed it")
	}
}

// In Chat2Graph, finish, stop and fail overwrote each other, and the answer of a finished job.
func TestTheFirstEndCounts(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: -1}}, draft([]string{"a", "loader"}, []string{"b", "loader"}))
	r.begins("p1-a/1", "p1-b/1")
	r.report("p1-a/1 EXECUTION_ERROR | lesson=first")
	refusedAs(t, r.b.Stop(job.Halt{Reason: "", By: ""}, r.now), "not_running") // it is failing already
	r.report("p1-b/1 EXECUTION_ERROR | lesson=second")
	r.is(job.StatusFailed)
	if r.b.Reason != "subjob p1-a failed: it failed 1 times, the last time: first" {
		t.Fatal(r.b.Reason)
	}
}

func TestAFinishedJobKeepsItsAnswer(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}))
	r.begins("p1-a/1")
	r.report("p1-a/1 SUCCESS | output=the answer")
	before := encoded(t, r.b)
	refusedAs(t, r.b.Stop(job.Halt{Reason: "late", By: "ann"}, r.now), "not_running")
	refusedAs(t, r.b.Recover(job.Recover{}, r.now), "not_recoverable")
	r.report("p1-a/1 EXECUTION_ERROR")
	r.b.Planned(job.Draft{}, errors.New("late"), r.now)
	if encoded(t, r.b) != before || r.b.Answer()[0].Text != "the answer" {
		t.Fatal("a finished job was changed")
	}
}
