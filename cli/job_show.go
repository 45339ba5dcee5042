package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// mostShown bounds the subjobs that a screen shows one by one.
const mostShown = 40

func (a jobs) showCommand() *cobra.Command {
	var follow bool
	return a.build(command{
		name: "job show",
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&follow, "follow", false, "show what happens until the job waits or ends")
			a.archived(flags)
		},
		run: func(ctx context.Context, args []string) error {
			if follow {
				return a.withService(ctx, func(svc service) error { return a.follow(ctx, svc, args[0]) })
			}
			return call(ctx, a.app, func(svc service) (thread.JobView, error) { return svc.Job(ctx, args[0]) }, a.showJob)
		},
	})
}

func (a jobs) answerCommand() *cobra.Command {
	return a.build(command{
		name:  "job answer",
		flags: a.archived,
		run: func(ctx context.Context, args []string) error {
			return call(ctx, a.app, func(svc service) (thread.JobAnswer, error) { return svc.JobAnswer(ctx, args[0]) },
				func(answer thread.JobAnswer) { a.Printf("%s\n", screen.Lines(answer.Text)) })
		},
	})
}

func (a jobs) showJob(v thread.JobView) {
	a.Printf("%s\n", jobLine(v.View))
	t := a.Table()
	t.Fact("leader", v.Leader)
	t.Fact("goal", screen.Brief(v.Goal))
	t.Fact("why", v.Reason)
	t.Fact("started", a.Ago(v.Started))
	t.Fact("ended", a.Ago(v.Ended))
	t.Print("")
	current := slices.DeleteFunc(slices.Clone(v.SubJobs), func(s job.SubJob) bool { return s.Legacy })
	if len(current) > 0 {
		a.Printf("\n")
		a.draw(current)
		a.Printf("\n")
		a.showSubJobs(v.View, current)
	}
	screen.Section(a.Screen, v.Waiting, func(i thread.InboxItem) screen.Row {
		asks := i.Asks
		if i.Question == "" {
			asks = fmt.Sprintf("(%d more)", i.Open)
		}
		return screen.Row{i.Question, i.Thread, screen.Brief(asks)}
	}, "QUESTION", "THREAD", "ASKS")
	next := nextOfJob(v.View)
	if len(v.Waiting) > 0 && v.Waiting[0].Question != "" && v.Waiting[0].Thread != job.WorkflowID(v.ID) {
		next = []string{"question", v.Waiting[0].Thread, v.Waiting[0].Question}
	}
	if next[1] != "show" {
		a.next(next...)
	}
}

// jobLine is a job in one line.
func jobLine(v job.View) string {
	status := string(v.Status)
	if v.Phase != "" && v.Phase != job.PhaseWorking {
		status += " (" + strings.ReplaceAll(string(v.Phase), "_", " ") + ")"
	}
	text := screen.Clean(v.ID) + "  " + status
	if v.PlanVersion > 0 {
		text += fmt.Sprintf("  plan v%d", v.PlanVersion)
	}
	if v.Total > 0 {
		text += fmt.Sprintf("  %d/%d done", v.Finished, v.Total)
	}
	text += spentShort(v)
	if v.Duration > 0 && v.Budget.Seconds == 0 {
		text += "  " + screen.Duration(v.Duration)
	}
	return text
}

// mark is where a subjob stands in one character.
func mark(s job.SubJob) string {
	ended := map[job.Status]string{job.StatusFinished: screen.MarkFinished, job.StatusFailed: screen.MarkFailed, job.StatusStopped: screen.MarkStopped}
	switch {
	case s.Open:
		return screen.MarkRunning
	case ended[s.Status] == "" && s.Attempts > 0:
		return screen.MarkRetry
	}
	return cmp.Or(ended[s.Status], screen.MarkWaiting)
}

// draw draws what waits for what, or lists it when it is too much for a picture.
func (a jobs) draw(subjobs []job.SubJob) {
	if len(subjobs) > mostShown {
		a.Printf("%d subjobs are too many to draw\n", len(subjobs))
		return
	}
	steps := make([]screen.Step, len(subjobs))
	for i, s := range subjobs {
		steps[i] = screen.Step{ID: s.ID, Mark: mark(s), After: s.Dependencies}
	}
	a.Draw(steps)
}

// nextOfJob returns the command that takes a job further, nil when there is nothing to do.
func nextOfJob(v job.View) []string {
	switch {
	case v.Phase == job.PhaseApproving:
		return []string{"job", "plan", v.ID}
	case v.Phase == job.PhaseOverBudget:
		return append([]string{"job", "budget", v.ID}, raised(v)...)
	case v.Status == job.StatusFinished:
		return []string{"job", "answer", v.ID}
	case v.Status == job.StatusFailed, v.Status == job.StatusStopped:
		return []string{"job", "recover", v.ID}
	}
	return []string{"job", "show", v.ID}
}

// showSubJobs shows the subjobs that count, and behind them those that others have replaced.
func (a jobs) showSubJobs(v job.View, current []job.SubJob) {
	replaced := slices.DeleteFunc(slices.Clone(v.SubJobs), func(s job.SubJob) bool { return !s.Legacy })
	shown := current
	if len(current) > mostShown {
		shown = slices.DeleteFunc(slices.Clone(current), func(s job.SubJob) bool {
			return s.Attempts < 2 && len(s.Lessons) == 0 && (s.Status == job.StatusFinished || s.Status == job.StatusCreated)
		})
	}
	shown = append(slices.Clone(shown[:min(len(shown), mostShown)]), replaced[:min(len(replaced), mostShown)]...)
	screen.Rows(a.Screen, shown, func(s job.SubJob) screen.Row {
		return screen.Row{s.ID, s.Expert, statusOfSubJob(s), s.Attempts, a.took(s), noteOf(s, v.SubJobs)}
	}, "SUBJOB", "EXPERT", "STATUS", "ATTEMPTS", "TOOK", "NOTE")
	if more := len(v.SubJobs) - len(shown); more > 0 {
		a.Printf("%d more: %s\n", more, a.commandLine("job", "show", v.ID, "-o", "json"))
	}
}

// took is how long the work on a subjob took from its first attempt on, or has taken until now.
func (a jobs) took(s job.SubJob) string {
	switch {
	case s.Started.IsZero():
		return ""
	case s.Open || s.Ended.IsZero():
		return screen.Duration(a.Now().Sub(s.Started))
	}
	return screen.Duration(s.Ended.Sub(s.Started))
}

func statusOfSubJob(s job.SubJob) string {
	switch {
	case s.Legacy:
		return "REPLACED"
	case s.Stale:
		return string(s.Status) + " (stale)"
	}
	return string(s.Status)
}

// noteOf is what a person should know of a subjob at first sight.
func noteOf(s job.SubJob, all []job.SubJob) string {
	if s.Legacy {
		var by []string
		for _, other := range all {
			if other.Parent == s.ID {
				by = append(by, other.ID)
			}
		}
		return "by " + screen.List(by)
	}
	if n := len(s.Lessons); n > 0 && s.Status != job.StatusFinished {
		return screen.Shorten("lesson: "+screen.Clean(s.Lessons[n-1]), screen.CellWidth)
	}
	if s.Reason != "" {
		return screen.Brief(s.Reason)
	}
	return goalCell(s.Goal)
}
