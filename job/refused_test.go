package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"superstep.dev/job"
)

// TestBadJobsAreRefused before anything of them begins, each with what is wrong.
func TestBadJobsAreRefused(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n+1) }
	good := experts("loader", "writer")
	for problem, c := range map[string]struct {
		change  func(j *job.Job)
		experts []job.Profile
	}{
		"a job's id is 1 to 64 letters": {change: func(j *job.Job) { j.ID = "" }},
		"not \"a b\"":                   {change: func(j *job.Job) { j.ID = "a b" }},
		"not \"../x\"":                  {change: func(j *job.Job) { j.ID = "../x" }},
		"its goal has 8193 bytes":       {change: func(j *job.Job) { j.Goal = long(job.MaxGoal) }},
		"its context has 32769 bytes":   {change: func(j *job.Job) { j.Context = long(job.MaxContext) }},
		"its context is not UTF-8":      {change: func(j *job.Job) { j.Context = "\xff" }},
		"bytes as JSON; 81920 may be":   {change: func(j *job.Job) { j.Context = strings.Repeat("\x01", job.MaxContext) }},
		"its requester has 257 bytes":   {change: func(j *job.Job) { j.Requester = long(256) }},
		"an artifact has no name":       {change: func(j *job.Job) { j.Artifacts = []job.Artifact{{URI: "u"}} }},
		"it has 101 artifacts":          {change: func(j *job.Job) { j.Artifacts = make([]job.Artifact, 101) }},
		"its artifact's URI has 2049":   {change: func(j *job.Job) { j.Artifacts = []job.Artifact{{Name: "a", URI: long(2048)}} }},
		"its artifacts take":            {change: func(j *job.Job) { j.Artifacts = repeated(job.Artifact{Name: "a", URI: long(2000)}, 9) }},
		"max_retries is -2":             {change: func(j *job.Job) { j.Policy.MaxRetries = -2 }},
		"max_reopens is 101":            {change: func(j *job.Job) { j.Policy.MaxReopens = 101 }},
		"max_reopens_total is -1":       {change: func(j *job.Job) { j.Policy.MaxReopensTotal = -1 }},
		"max_plan_attempts is 1000":     {change: func(j *job.Job) { j.Policy.MaxPlanAttempts = 1000 }},
		"life_cycle is 21":              {change: func(j *job.Job) { j.Policy.LifeCycle = 21 }},
		"retry_wait or attempt_timeout": {change: func(j *job.Job) { j.Policy.RetryWait = -time.Second }},
		"the budget for seconds is -1":  {change: func(j *job.Job) { j.Budget.Seconds = -1 }},
		"the budget for micro_usd is":   {change: func(j *job.Job) { j.Budget.MicroUSD = 1 << 60 }},
		"it has no experts":             {experts: []job.Profile{}},
		"two experts are called":        {experts: experts("a", "a")},
		"too much alike":                {experts: experts("a b", "A-B")},
		"it has no name or no graph":    {experts: []job.Profile{{Name: "a"}}},
		"its name has 65 bytes":         {experts: experts(long(64))},
		"its timeout is negative":       {experts: []job.Profile{{Name: "a", Graph: "a", Timeout: -1}}},
		"its description has 4097":      {experts: []job.Profile{{Name: "a", Graph: "a", Description: long(job.MaxNote)}}},
		"bytes of descriptions are too": {experts: many(20, job.MaxNote)},
		"201 experts":                   {experts: many(201, 0)},
	} {
		j := job.Job{ID: "j", Goal: "g"}
		if c.change != nil {
			c.change(&j)
		}
		if c.experts == nil {
			c.experts = good
		}
		_, err := job.New(j, c.experts, start)
		refusedAs(t, err, "bad_job")
		if !strings.Contains(err.Error(), problem) || len(err.Error()) > 1000 {
			t.Errorf("%q: %v", problem, err)
		}
	}
}

func repeated(a job.Artifact, n int) []job.Artifact {
	out := make([]job.Artifact, n)
	for i := range out {
		out[i] = a
	}
	return out
}

func many(n, description int) []job.Profile {
	var out []job.Profile
	for i := range n {
		out = append(out, job.Profile{Name: "e" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Graph: "g", Description: strings.Repeat("d", description)})
	}
	return out
}

// TestTextsOfPeopleAreNotCut: one that is too long is refused, not shortened.
func TestTextsOfPeopleAreNotCut(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{Approve: "first"}}, chain)
	long := strings.Repeat("x", job.MaxNote+1)
	refusedAs(t, r.b.Decide(job.Decision{PlanVersion: 1, Verdict: "replan", Reason: long}, r.now), "bad_text")
	if err := r.b.Decide(job.Decision{PlanVersion: 1, Verdict: "approve"}, r.now); err != nil {
		t.Fatal(err)
	}
	r.begins("p1-a/1")
	refusedAs(t, r.b.Retry("p1-a", long, "", r.now), "bad_text")
	refusedAs(t, r.b.Stop(job.Halt{Reason: long, By: ""}, r.now), "bad_text")
	if err := r.b.Stop(job.Halt{Reason: "", By: ""}, r.now); err != nil {
		t.Fatal(err)
	}
	r.report("p1-a/1 EXECUTION_ERROR")
	refusedAs(t, r.b.Recover(job.Recover{Lesson: long}, r.now), "bad_text")
}

// TestPolicyIsFixedWhenTheJobBegins: the defaults are part of the board, so that another deployment's are not taken.
func TestPolicyIsFixedWhenTheJobBegins(t *testing.T) {
	want := job.Policy{
		MaxParallel: 10, MaxRetries: 3, RetryWait: time.Second, MaxReopens: 2, MaxReopensTotal: 10, MaxPlanAttempts: 2, LifeCycle: 3,
		AttemptTimeout: 24 * time.Hour,
	}
	if got := newBoard(t, job.Job{}).Job.Policy; got != want {
		t.Fatalf("%+v", got)
	}
}

// TestEventsAreNumberedWithoutGaps, and the oldest are forgotten.
func TestEventsAreNumberedWithoutGaps(t *testing.T) {
	r := planned(t, job.Job{Policy: job.Policy{MaxRetries: 100, RetryWait: time.Nanosecond}}, draft([]string{"a", "loader"}))
	for attempt := range 101 {
		r.begins(attemptText("p1-a", attempt+1))
		for i := range 10 {
			if err := r.b.AddExpert(experts("writer")[0], strings.Repeat("b", 20*i), r.now); err != nil {
				t.Fatal(err)
			}
		}
		r.report(attemptText("p1-a", attempt+1) + " EXECUTION_ERROR | lesson=" + strings.Repeat("<", attempt))
		r.now = r.now.Add(time.Minute)
	}
	all := r.b.EventsAfter(0)
	if len(all) > job.MaxEvents || all[0].Seq == 1 {
		t.Fatalf("%d events from %d", len(all), all[0].Seq)
	}
	for i, e := range all {
		if e.Seq != all[0].Seq+int64(i) {
			t.Fatalf("event %d follows %d", e.Seq, all[i-1].Seq)
		}
	}
	if size := len(encodedEvents(t, all)); size > job.MaxEventBytes {
		t.Fatalf("%d bytes of events", size)
	}
	last := r.b.View(r.now).LastEvent
	if got := r.b.EventsAfter(last - 2); len(got) != 2 || got[1].Kind != "job_failed" || len(r.b.EventsAfter(last)) != 0 {
		t.Fatalf("%+v", got)
	}
}

func encodedEvents(t *testing.T, events []job.Event) string {
	return encoded(t, &job.Board{Events: events})
}

// TestErrorsSayWhatToDo holds what people read.
func TestErrorsSayWhatToDo(t *testing.T) {
	err := newBoard(t, job.Job{}).RemoveExpert("poet", "", start)
	if want := `job j: there is no expert "poet"; there are: loader, analyst, critic, writer`; err == nil || err.Error() != want {
		t.Error(err)
	}
	bad := &job.BadPlanError{SubJob: "a", Problem: "it has no goal"}
	if !errors.As(error(bad), new(*job.BadPlanError)) || bad.Error() != `the plan cannot be used: subjob "a": it has no goal` {
		t.Error(bad)
	}
}
