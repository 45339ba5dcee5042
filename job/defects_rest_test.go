package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"superstep.dev/job"
)

// B11: the first look at a job that had no plan yet stored an empty one, over a plan that came meanwhile.
func TestB11LookingBeforeThereIsAPlanKeepsThePlanThatComes(t *testing.T) {
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

// B21: of several last steps one was taken for the result, without a word, and parallel ones ran one after another.
func TestB21EveryLastSubJobIsPartOfTheAnswerAndBranchesRunAtOnce(t *testing.T) {
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

// B22: what an expert remembered of a job grew with every attempt, without a bound, and was lost at a restart.
func TestB22WhatAnAttemptIsToldIsBoundedAndKept(t *testing.T) {
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
