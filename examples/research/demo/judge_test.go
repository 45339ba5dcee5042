package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/research/figures"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// good is the account of a job of one subjob that went well.
func good() account {
	s := job.SubJob{DraftSubJob: job.DraftSubJob{ID: "write", Expert: "writer"}, Status: job.StatusFinished, Attempts: 1}
	return account{
		answer:  thread.JobAnswer{Text: "# R", View: job.View{Status: job.StatusFinished, SubJobs: []job.SubJob{s}}},
		reports: map[string]string{"r.md": "# R\n"},
		started: map[string]int{job.AttemptThread(id, "write", 1): 1},
		attempts: []attempt{{s, 1, []demo.Execution{{Node: "writer", Attempt: 1, Asked: true}, {Node: "writer", Attempt: 2,
			Ledger: []ledger.Entry{{Name: "report.publish", Kind: ledger.KindEffect, Attempts: 1}}}}}},
	}
}

func TestJudge(t *testing.T) {
	a := good()
	require.NoError(t, a.onceEach())
	require.NoError(t, a.oneReport())
	require.Equal(t, "attempt 1 of write", a.lost())
	thread := job.AttemptThread(id, "write", 1)
	for problem, spoil := range map[string]func(*account){
		"attempt 1 of write was started 2 times and finished 1 times": func(a *account) { a.started[thread] = 2 },
		"attempt 1 of write was started 1 times and finished 2 times": func(a *account) { a.attempts[0].tasks[0].Asked = false },
		"attempt 1 of write was started 1 times and finished 0 times": func(a *account) { a.attempts[0].tasks = nil },
		"the leader started 2 attempts, and its job has 1":            func(a *account) { a.started["job/penguins/s/x/a1"] = 1 },
	} {
		a := good()
		spoil(&a)
		require.EqualError(t, a.onceEach(), problem)
	}
	for problem, spoil := range map[string]func(*account){
		"the job is FAILED: ":                   func(a *account) { a.answer.View.Status = job.StatusFailed },
		"0 reports were published, not one":     func(a *account) { a.reports = nil },
		"2 reports were published, not one":     func(a *account) { a.reports["s.md"] = "# R\n" },
		"the report in r.md is not the answer":  func(a *account) { a.answer.Text = "# S" },
		"the report was sent 2 times, not once": func(a *account) { a.attempts[0].tasks[1].Ledger[0].Attempts = 2 },
		"the report was sent 0 times, not once": func(a *account) { a.attempts[0].tasks[1].Ledger = nil },
	} {
		a := good()
		spoil(&a)
		require.ErrorContains(t, a.oneReport(), problem)
	}
}

func TestRightFigures(t *testing.T) {
	want, err := direct()
	require.NoError(t, err)
	require.Len(t, want, 12)
	var report strings.Builder
	for i, m := range want {
		if i%3 == 0 {
			fmt.Fprintf(&report, "\n## %s\n\n", m.section)
		}
		fmt.Fprintf(&report, "| %s | %d | %.2f | 1 |\n", m.species, m.n, m.mean)
	}
	require.Contains(t, report.String(), "| Gentoo | 123 | 5076.02 |")
	require.NoError(t, rightFigures(report.String(), want))
	err = rightFigures(strings.Replace(report.String(), "5076.02", "5035.08", 1), want)
	require.EqualError(t, err, `the report does not say under "Body mass (g)" that "| Gentoo | 123 | 5076.02 | "`)
	require.Error(t, rightFigures(strings.Replace(report.String(), "## Body", "## Bill", 1), want))
	require.Error(t, rightFigures("", want))
}

func TestReadMeasure(t *testing.T) {
	for line, want := range map[string]figures.Measure{"": figures.BodyMass, "1": figures.BillLength, "4": figures.BodyMass,
		"Flipper Length": figures.FlipperLength, "bill_depth_mm": figures.BillDepth} {
		m, clear := readMeasure(line)
		require.True(t, clear, line)
		require.Equal(t, want, m)
	}
	for _, line := range []string{"0", "5", "-1", "wings", "99999999999999999999"} {
		_, clear := readMeasure(line)
		require.False(t, clear, line)
	}
}

func TestEventLine(t *testing.T) {
	require.Equal(t, "started       s-1 analyst (attempt 2)", eventLine(job.Event{Kind: "started", SubJob: "s-1", Expert: "analyst", Attempt: 2}))
	long := eventLine(job.Event{Kind: "over_budget", Text: strings.Repeat("ä", 200)})
	require.Len(t, []rune(long), lineWidth)
	require.True(t, strings.HasPrefix(long, "over budget"))
}

func TestAgain(t *testing.T) {
	var a account
	named := func(id string) job.DraftSubJob { return job.DraftSubJob{ID: id} }
	a.answer.View.SubJobs = []job.SubJob{{DraftSubJob: named("whole"), Legacy: true},
		{DraftSubJob: named("one"), Parent: "whole", Lessons: []string{"do it\nagain"}},
		{DraftSubJob: named("two"), Parent: "whole", Lessons: []string{"do it\nagain"}}}
	require.Equal(t, []string{"planned again whole, as 2 subjobs", "sent back     one, two:", "              do it: again"}, a.again())
	for _, line := range wrapped(strings.Repeat("word ", 100)) {
		require.LessOrEqual(t, len(line), lineWidth)
	}
}
