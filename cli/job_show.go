package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/job"
)

// mostShown bounds the subjobs that a screen shows one by one.
const mostShown = 40

func (a *app) jobShowCommand() *cobra.Command {
	var follow bool
	cmd := a.build(command{
		use: "show JOB", short: "Show where a job stands", args: []string{"JOB"},
		about: `What waits for what, from left to right: ✓ finished, ▶ under way, ↻ to be done again, · not begun, ✗ failed, ■ stopped.
Below it each subjob with its attempts and what it was told, and the open questions. With --follow what happens is shown until
the job waits or ends, with the exit code of that: 0 finished, 1 failed, 3 waits, 7 stopped.`,
		example: []string{"job show report-3", "job show report-3 --follow", "job show report-3 -o json"},
		run: func(cmd *cobra.Command, args []string) error {
			if !follow {
				return onJob(a, cmd.Context(), args[0], service.Job, a.showJob)
			}
			if err := checkJob(args[0]); err != nil {
				return err
			}
			return a.withService(cmd.Context(), func(svc service) error { return a.followJob(cmd.Context(), svc, args[0], 0) })
		},
	})
	cmd.Flags().BoolVar(&follow, "follow", false, "show what happens until the job waits or ends")
	return cmd
}

func (a *app) showJob(v superstep.JobView) error {
	a.printf("%s\n", a.jobLine(v.View))
	if err := a.jobFacts(v.View).writeTo(a.stdout, ""); err != nil {
		return err
	}
	current, replaced := split(v.SubJobs)
	if len(current) > 0 {
		a.printf("\n")
		a.drawJob(current)
		a.printf("\n")
		if err := a.showSubJobs(v.View, current, replaced); err != nil {
			return err
		}
	}
	if err := a.showWaiting(v.Waiting); err != nil {
		return err
	}
	next := nextOfJob(v.View)
	if len(v.Waiting) > 0 && v.Waiting[0].Question != "" && v.Waiting[0].Thread != job.WorkflowID(v.ID) {
		next = []string{"question", v.Waiting[0].Thread, v.Waiting[0].Question}
	}
	if len(next) > 1 && next[1] != "show" {
		a.next(next)
	}
	return nil
}

// jobLine is a job in one line.
func (a *app) jobLine(v job.View) string {
	status := string(v.Status)
	if v.Phase != "" && v.Phase != job.PhaseWorking {
		status += " (" + strings.ReplaceAll(string(v.Phase), "_", " ") + ")"
	}
	text := clean(v.ID) + "  " + status
	if v.PlanVersion > 0 {
		text += fmt.Sprintf("  plan v%d", v.PlanVersion)
	}
	if v.Total > 0 {
		text += fmt.Sprintf("  %d/%d done", v.Finished, v.Total)
	}
	text += spentShort(v)
	if v.Duration > 0 && v.Budget.Seconds == 0 {
		text += "  " + shortDuration(v.Duration)
	}
	return text
}

// jobFacts are the lines of a job that have something to say.
func (a *app) jobFacts(v job.View) *table {
	t := newTable()
	for _, fact := range [][2]string{{"leader", v.Leader}, {"goal", shorten(clean(v.Goal), cellWidth)}, {"why", v.Reason},
		{"started", a.ago(v.Started)}, {"ended", a.ago(v.Ended)}} {
		if fact[1] != "" {
			t.row(fact[:]...)
		}
	}
	return t
}

// drawJob draws what waits for what, or lists it when it is too much for a picture.
func (a *app) drawJob(subjobs []job.SubJob) {
	if len(subjobs) > mostShown {
		a.printf("%d subjobs are too many to draw\n", len(subjobs))
		return
	}
	if drawn, ok := picture(subjobs); ok {
		a.printf("%s", a.coloured(drawn))
		return
	}
	depth := map[string]int{}
	for _, s := range subjobs {
		for _, d := range s.Dependencies {
			depth[s.ID] = max(depth[s.ID], depth[d]+1)
		}
		after := ""
		if len(s.Dependencies) > 0 {
			after = "  after " + clean(list(s.Dependencies))
		}
		a.printf("%s%s %s%s\n", strings.Repeat("  ", depth[s.ID]), clean(s.ID), a.coloured(mark(s)), after)
	}
}

// coloured gives the marks of a picture their colours, on a terminal.
func (a *app) coloured(drawn string) string {
	if !a.colours {
		return drawn
	}
	var painted []string
	for mark, c := range map[string]colour{markFinished: green, markRunning: yellow, markRetry: yellow, markFailed: red, markStopped: red} {
		painted = append(painted, mark, string(c)+mark+endColour)
	}
	return strings.NewReplacer(painted...).Replace(drawn)
}

// showWaiting shows the open questions of a job.
func (a *app) showWaiting(items []superstep.InboxItem) error {
	if len(items) == 0 {
		return nil
	}
	a.printf("\n")
	t := newTable("QUESTION", "THREAD", "ASKS")
	for _, i := range items {
		asks := i.Asks
		if i.Question == "" {
			asks = fmt.Sprintf("(%d more)", i.Open)
		}
		t.row(i.Question, i.Thread, shorten(clean(asks), cellWidth))
	}
	return t.writeTo(a.stdout, "")
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

// raised are flags that double the limits that are reached.
func raised(v job.View) []string {
	var flags []string
	double := func(flag string, spent, most int64) {
		if most > 0 && spent >= most {
			flags = append(flags, flag, fmt.Sprint(2*most))
		}
	}
	double("--tokens", v.Spent.Tokens, v.Budget.Tokens)
	double("--writes", v.Spent.Writes, v.Budget.Writes)
	if v.Budget.MicroUSD > 0 && v.Spent.MicroUSD >= v.Budget.MicroUSD {
		flags = append(flags, "--usd", dollars(2*v.Budget.MicroUSD))
	}
	if v.Budget.Seconds > 0 && int64(v.Duration.Seconds()) >= v.Budget.Seconds {
		flags = append(flags, "--time", fmt.Sprintf("%ds", 2*v.Budget.Seconds))
	}
	return flags
}
