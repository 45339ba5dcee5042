package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"superstep.dev/cli"
	"superstep.dev/examples/internal/demo"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// account is what the job, its attempts and the store say in the end.
type account struct {
	answer   thread.JobAnswer
	reports  map[string]string // texts by file name
	started  map[string]int    // how often the leader started each attempt's thread
	attempts []attempt
}

// attempt is one attempt of a subjob with what its history has.
type attempt struct {
	job.SubJob
	number int
	tasks  []demo.Execution
}

func (d *researching) account(ctx context.Context) (a account, err error) {
	if a.answer, err = d.Runs.JobAnswer(ctx, id); err != nil {
		return a, err
	}
	if a.reports, err = reportsIn(storeIn(d.Dir)); err != nil {
		return a, err
	}
	if a.started, err = d.started(ctx); err != nil {
		return a, err
	}
	for _, s := range a.answer.View.SubJobs {
		for n := 1; n <= s.Attempts; n++ {
			tasks, err := d.Executions(ctx, job.AttemptThread(id, s.ID, n), "")
			if err != nil {
				return a, err
			}
			a.attempts = append(a.attempts, attempt{s, n, tasks})
		}
	}
	return a, nil
}

// reportsIn are the reports that were published, by the names of their files.
func reportsIn(store string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(store, "reports", "*"))
	reports := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		reports[filepath.Base(file)] = string(text)
	}
	return reports, err
}

// started counts how often the leader started each attempt, from its recorded history.
func (d *researching) started(ctx context.Context) (map[string]int, error) {
	events, err := d.Tail.All(ctx, job.WorkflowID(id), "")
	if err != nil {
		return nil, fmt.Errorf("read the history of the leader: %w", err)
	}
	times := map[string]int{}
	for _, e := range events {
		if child := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); child != nil {
			times[child.GetWorkflowId()]++
		}
	}
	return times, nil
}

// report shows what was made and what happened, and judges it.
func (d *researching) report(ctx context.Context) (verdict string, err error) {
	d.Line("\n4. The answer, which is the report that was published:")
	if err := d.Superstep(ctx, cli.ExitOK, "job", "answer", id); err != nil {
		return "", err
	}
	a, err := d.account(ctx)
	if err != nil {
		return "", err
	}
	want, err := direct()
	if err != nil {
		return "", err
	}
	d.Line("\nWhat happened")
	for _, line := range a.again() {
		d.Step("%s", cut(line))
	}
	d.Step("%s", cut(fmt.Sprintf("%-13s %s", "resumed", a.lost())))
	d.Step("%-13s %d attempts of %d subjobs, each started once and finished once", "attempts", len(a.attempts), len(a.answer.View.SubJobs))
	d.Step("%-13s %d means and counts, as computed from the file directly", "figures", len(want))
	d.Line("Try next: superstep job --help · OPENAI_API_KEY=… make demo-research (a model makes the plans)")
	return "one report, and its figures are right", errors.Join(a.onceEach(), a.oneReport(), rightFigures(a.answer.Text, want), d.asPlanned(a))
}

// again says which subjobs were planned again, and which were sent back with what lesson.
func (a account) again() (lines []string) {
	into, back := map[string]int{}, map[string][]string{}
	var lessons []string
	for _, s := range a.answer.View.SubJobs {
		into[s.Parent]++
		for _, lesson := range s.Lessons {
			if back[lesson] == nil {
				lessons = append(lessons, lesson)
			}
			back[lesson] = append(back[lesson], s.ID)
		}
	}
	for _, s := range a.answer.View.SubJobs {
		if s.Legacy {
			lines = append(lines, fmt.Sprintf("%-13s %s, as %d subjobs", "planned again", s.ID, into[s.ID]))
		}
	}
	for _, lesson := range lessons {
		lines = append(lines, fmt.Sprintf("%-13s %s:", "sent back", strings.Join(back[lesson], ", ")))
		lines = append(lines, wrapped(strings.ReplaceAll(lesson, "\n", ": "))...)
	}
	return lines
}

// wrapped is a text in indented lines that fit on the screen.
func wrapped(text string) (lines []string) {
	const before = 14
	line := ""
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > lineWidth-before && line != "" {
			lines, line = append(lines, strings.Repeat(" ", before)+line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, strings.Repeat(" ", before)+line)
}

// named are the calls of one name among what a task has on record.
func named(calls []ledger.Entry, name string) []ledger.Entry {
	return slices.DeleteFunc(calls, func(e ledger.Entry) bool { return e.Name != name })
}

// lost says whose attempts went on on another worker.
func (a account) lost() string {
	var names []string
	for _, one := range a.attempts {
		for _, t := range one.tasks {
			if t.Attempt > 1 {
				names = append(names, fmt.Sprintf("attempt %d of %s", one.number, one.ID))
			}
		}
	}
	if names == nil {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
