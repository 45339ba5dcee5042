package job_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/job"
)

// argOf is the value of a directive's argument, "" without one.
func argOf(d *datadriven.TestData, name string) string {
	if arg, ok := d.Arg(name); ok {
		return strings.Join(arg.Vals, ",")
	}
	return ""
}

func number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // a mistake in the script
	}
	return n
}

// lines returns a directive's lines without blanks.
func lines(input string) []string {
	var out []string
	for line := range strings.Lines(input) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// jobOf reads a job's fields: id, goal, expert, the policy's and the budget's.
func jobOf(d *datadriven.TestData) (job.Job, error) {
	arg := func(name string) string { return argOf(d, name) }
	j := job.Job{ID: "j", Goal: "a goal", Expert: arg("expert"), Budget: budgetOf(d)}
	if id, given := d.Arg("id"); given {
		j.ID = strings.Join(id.Vals, "")
	}
	if goal, given := d.Arg("goal"); given {
		j.Goal = strings.Join(goal.Vals, "")
	}
	j.Policy = job.Policy{
		MaxParallel: number(arg("parallel")), MaxRetries: number(arg("retries")), MaxReopens: number(arg("reopens")),
		MaxReopensTotal: number(arg("complaints")), MaxPlanAttempts: number(arg("plans")), LifeCycle: number(arg("life")),
		Approve: arg("approve"), Synthesis: arg("synthesis"),
	}
	var err error
	if wait := arg("wait"); wait != "" {
		j.Policy.RetryWait, err = time.ParseDuration(wait)
	}
	return j, err
}

func budgetOf(d *datadriven.TestData) job.Budget {
	amount := func(name string) int64 { return int64(number(argOf(d, name))) }
	return job.Budget{
		Tokens: amount("tokens"), MicroUSD: amount("usd"), Writes: amount("writes"), Seconds: amount("seconds"),
		SubJobs: amount("subjobs"), Attempts: amount("attempts"),
	}
}

// fieldsOf splits a line at its bars: words of the first part, and the others by their names.
func fieldsOf(line string) ([]string, map[string]string) {
	parts := strings.Split(line, "|")
	fields := map[string]string{}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return strings.Fields(parts[0]), fields
}

// draftOf reads a plan: see [TestScripts].
func draftOf(input string) job.Draft {
	var d job.Draft
	for _, line := range lines(input) {
		words, fields := fieldsOf(line)
		s := job.DraftSubJob{ID: words[0], Goal: "do " + words[0], Context: fields["context"]}
		if len(words) > 1 {
			s.Expert, s.Dependencies = words[1], words[2:]
		}
		if goal, given := fields["goal"]; given {
			s.Goal = goal
		}
		d.SubJobs = append(d.SubJobs, s)
		d.Usage.Tokens += int64(number(fields["tokens"]))
	}
	return d
}

// reportOf reads "id/attempt STATUS", with any of output, evaluation, lesson, blames (comma-separated), tokens, usd,
// writes, unknown, over, stored (a run's id, with bytes and sha) behind bars.
func reportOf(line string) (job.Attempt, job.WorkflowMessage, error) {
	words, fields := fieldsOf(line)
	id, attempt, ok := strings.Cut(words[0], "/")
	if !ok || len(words) != 2 {
		return job.Attempt{}, job.WorkflowMessage{}, fmt.Errorf("a report is id/attempt STATUS, not %q", line)
	}
	m := job.WorkflowMessage{
		Status: job.WorkflowStatus(words[1]), Output: fields["output"], Evaluation: fields["evaluation"], Lesson: fields["lesson"],
		Usage: job.Usage{Tokens: int64(number(fields["tokens"])), MicroUSD: int64(number(fields["usd"])), Writes: int64(number(fields["writes"]))},
	}
	if blames := fields["blames"]; blames != "" {
		m.Blames = strings.Split(blames, ",")
	}
	_, m.Usage.Unknown = fields["unknown"]
	_, m.OverBudget = fields["over"]
	if run := fields["stored"]; run != "" {
		m.Stored = &job.Reference{RunID: run, Bytes: number(fields["bytes"]), SHA256: strings.Repeat(fields["sha"], 64)}
	}
	if name, uri, given := strings.Cut(fields["artifact"], " "); given {
		m.Artifacts = []job.Artifact{{Name: name, URI: uri}}
	}
	return job.Attempt{SubJob: id, Attempt: number(attempt)}, m, nil
}
