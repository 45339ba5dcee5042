package job_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"superstep.dev/job"
)

// The tests in this file are named after the defects of Chat2Graph's leader that concern what a board decides. Each shows
// that the defect cannot happen here.

// drive is a board with the clock that its tests move by hand.
type drive struct {
	t   testing.TB
	b   *job.Board
	now time.Time
}

// planned is a board whose first plan is the draft.
func planned(t testing.TB, j job.Job, d job.Draft) *drive {
	t.Helper()
	r := &drive{t: t, b: newBoard(t, j), now: start}
	r.ready()
	r.plan(d)
	return r
}

func (r *drive) ready() job.Work { return r.b.Ready(r.now) }

func (r *drive) plan(d job.Draft) { r.b.Planned(d, nil, r.now) }

// begin is what begins now, as "subjob/attempt".
func (r *drive) begin() []string {
	var began []string
	for _, a := range r.ready().Run {
		began = append(began, attemptText(a.SubJob, a.Attempt))
	}
	return began
}

func (r *drive) report(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		a, m, err := reportOf(line)
		if err != nil {
			r.t.Fatal(err)
		}
		r.b.Reported(a, m, r.now)
	}
}

func (r *drive) begins(want ...string) {
	r.t.Helper()
	if got := r.begin(); !slices.Equal(got, want) {
		r.t.Fatalf("began %v, not %v", got, want)
	}
}

func (r *drive) is(status job.Status) {
	r.t.Helper()
	if r.b.Status != status {
		r.t.Fatalf("the job is %s (%s), not %s", r.b.Status, r.b.Reason, status)
	}
}

func (r *drive) subjob(id string) job.SubJob {
	r.t.Helper()
	v := r.b.View(r.now)
	at := slices.IndexFunc(v.SubJobs, func(s job.SubJob) bool { return s.ID == id })
	if at < 0 {
		r.t.Fatalf("there is no subjob %s", id)
	}
	return v.SubJobs[at]
}

func refusedAs(t testing.TB, err error, code string) {
	t.Helper()
	refused := new(job.RefusedError)
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("%v is no refusal %s", err, code)
	}
}

var (
	chain   = draft([]string{"a", "loader"}, []string{"b", "analyst", "a"}, []string{"c", "writer", "b"})
	diamond = draft([]string{"a", "loader"}, []string{"b", "analyst", "a"}, []string{"c", "critic", "a"}, []string{"d", "writer", "b", "c"})
)

// B2: a subjob that was too complicated always crashed the leader.
func TestB2ATooComplicatedSubJobIsPlannedAndTheJobFinishes(t *testing.T) {
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

// B3: an assigned expert, which every planned subjob has, was taken for a preset one: nothing was planned again, the same
// subjob was made once more for the same expert.
func TestB3AnAssignedExpertDoesNotKeepASubJobFromBeingPlanned(t *testing.T) {
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

// B4: an input data error ran nothing again, lost the lesson, looped for ever on roots, and crashed the second time.
func TestB4AnInputDataErrorRunsTheProducerAgainWithTheLesson(t *testing.T) {
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

func TestB4AComplaintOfARootIsBounded(t *testing.T) {
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

// B5: a predecessor that had failed counted as done, and its successors ran on the text of its error.
func TestB5NoSuccessorRunsOnAFailedPredecessor(t *testing.T) {
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

// B6: stop stopped nothing, and successors ran after it.
func TestB6NothingBeginsAfterAStop(t *testing.T) {
	r := planned(t, job.Job{}, diamond)
	r.begins("p1-a/1")
	if err := r.b.Stop("enough", "ann", r.now); err != nil {
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

// B7: recovering soon after a stop had everything that was left run twice, or merged two plans.
func TestB7ARecoverOverlapsWithNothing(t *testing.T) {
	r := planned(t, job.Job{}, diamond)
	r.begins("p1-a/1")
	if err := r.b.Stop("", "", r.now); err != nil {
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

func TestB7ARecoverWhilePlanningMakesOnePlan(t *testing.T) {
	r := &drive{t: t, b: newBoard(t, job.Job{}), now: start}
	r.ready()
	if err := r.b.Stop("", "", r.now); err != nil {
		t.Fatal(err)
	}
	r.plan(chain) // of the call that was told to end
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

// B8: what the scheduler did not expect left a job RUNNING for ever. See TestRandomJobs for all the rest.
func TestB8WhatNobodyExpectsDoesNotKeepAJobRunning(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: -1}}, chain)
	r.begins("p1-a/1")
	r.report("p1-z/1 SUCCESS", "p1-a/7 SUCCESS", "p1-b/1 INPUT_DATA_ERROR", "p1-a/1 MAYBE")
	r.is(job.StatusFailed)
	if w := r.ready(); !w.Done {
		t.Fatal("it is not done")
	}
}

// B9: a job was finished by whoever looked at it, and looking wrote.
func TestB9LookingChangesNothing(t *testing.T) {
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

// B10, B14: finish, stop and fail overwrote each other, and the answer of a finished job.
func TestB10TheFirstEndCounts(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: -1}}, draft([]string{"a", "loader"}, []string{"b", "loader"}))
	r.begins("p1-a/1", "p1-b/1")
	r.report("p1-a/1 EXECUTION_ERROR | lesson=first")
	refusedAs(t, r.b.Stop("", "", r.now), "not_running") // it is failing already
	r.report("p1-b/1 EXECUTION_ERROR | lesson=second")
	r.is(job.StatusFailed)
	if r.b.Reason != "subjob p1-a failed: it failed 1 times, the last time: first" {
		t.Fatal(r.b.Reason)
	}
}

func TestB14AFinishedJobKeepsItsAnswer(t *testing.T) {
	r := planned(t, job.Job{}, draft([]string{"a", "loader"}))
	r.begins("p1-a/1")
	r.report("p1-a/1 SUCCESS | output=the answer")
	before := encoded(t, r.b)
	refusedAs(t, r.b.Stop("late", "ann", r.now), "not_running")
	refusedAs(t, r.b.Recover(job.Recover{}, r.now), "not_recoverable")
	r.report("p1-a/1 EXECUTION_ERROR")
	r.b.Planned(job.Draft{}, errors.New("late"), r.now)
	if encoded(t, r.b) != before || r.b.Answer()[0].Text != "the answer" {
		t.Fatal("a finished job was changed")
	}
}

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
