package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/job"
)

func (a *app) jobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "job", Short: "Give leaders jobs, and steer them", GroupID: groupRuns,
		Long: `Give leaders jobs, and steer them.

A leader has a job planned into subjobs that depend on each other, has its experts do them, and sees to what follows when
one fails, when its input is of no use, or when it is too complicated. Each attempt of a subjob is a thread:
job/JOB/s/SUBJOB/aATTEMPT, which show, stream and resume work on.`,
		Example: strings.Join([]string{
			"  " + a.program + ` job submit --leader research --id report-3 --goal "Which penguins are heaviest?" --follow`,
			"  " + a.program + " job show report-3",
			"  " + a.program + " job answer report-3",
		}, "\n"),
		Args: a.unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(a.jobSubmitCommand(), a.jobListCommand(), a.jobShowCommand(), a.jobAnswerCommand(), a.jobPlanCommand(),
		a.jobStopCommand(), a.jobFailCommand(), a.jobRecoverCommand(), a.jobRetryCommand(), a.jobExpertsCommand(), a.jobBudgetCommand())
	return cmd
}

// checkJob refuses what cannot be a job's id.
func checkJob(id string) error { return checkID("the job's id", id) }

// checkID refuses what cannot be the id of a job or a subjob.
func checkID(what, id string) error {
	switch {
	case id == "":
		return usagef("%s is empty", what)
	case len(id) > job.MaxID:
		return usagef("%s has %d bytes; at most %d are allowed", what, len(id), job.MaxID)
	case strings.HasPrefix(id, "-"):
		return usagef("%s %s begins with a dash, which would make it a flag", what, quoted(id))
	case strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "":
		return usagef("%s %s may have letters, digits, dots, underscores and dashes only", what, quoted(id))
	}
	return nil
}

// onJob checks a job's id, makes one call about it and shows what came back.
func onJob[View any](a *app, ctx context.Context, id string, call func(service, context.Context, string) (View, error), show func(View) error) error {
	if err := checkJob(id); err != nil {
		return err
	}
	return onThread(a, ctx, id, call, show)
}

func (a *app) jobListCommand() *cobra.Command {
	var (
		q      superstep.JobsQuery
		status string
	)
	cmd := a.build(command{
		use: "list", short: "List jobs",
		about:   `The jobs known to the server, the latest first. Its index is a moment behind.`,
		example: []string{"job list", "job list --leader research --status failed", "job list -o json"},
		run: func(cmd *cobra.Command, _ []string) error {
			q.Status = job.Status(strings.ToUpper(status))
			return a.listJobs(cmd.Context(), q)
		},
	})
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&q.Leader, "leader", "", "only jobs of `LEADER`")
	cmd.Flags().StringVar(&status, "status", "", "only jobs whose `STATUS` is running, finished, failed or stopped")
	choices(cmd, "status", "running", "finished", "failed", "stopped")
	cmd.Flags().IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("at most `N` jobs, up to %d", mostListed))
	return cmd
}

func (a *app) listJobs(ctx context.Context, q superstep.JobsQuery) error {
	switch q.Status {
	case "", job.StatusRunning, job.StatusFinished, job.StatusFailed, job.StatusStopped:
	default:
		return usagef("--status %s is unknown; it is running, finished, failed or stopped", quoted(strings.ToLower(string(q.Status))))
	}
	if q.Limit < 1 || q.Limit > mostListed {
		return usagef("--limit %d is not between 1 and %d", q.Limit, mostListed)
	}
	return a.withService(ctx, func(svc service) error {
		items, err := svc.Jobs(ctx, q)
		if err != nil {
			return err
		}
		if a.json() {
			return a.writeJSON(append([]superstep.JobItem{}, items...)) // [] when there are none
		}
		return a.showJobs(items, q)
	})
}

func (a *app) showJobs(items []superstep.JobItem, q superstep.JobsQuery) error {
	if len(items) == 0 {
		a.printf("no jobs\n")
		return nil
	}
	t := a.statusTable("JOB", "LEADER", "STATUS", "STARTED", "GOAL")
	waits := ""
	for _, i := range items {
		status := string(i.Status)
		if i.Waits {
			status += " (waits)"
			waits = first(waits, i.ID)
		}
		t.row(i.ID, i.Leader, status, a.ago(i.Started), shorten(clean(i.Goal), cellWidth-40))
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if len(items) == q.Limit {
		a.printf("%d shown; there may be more: --limit, --leader, --status\n", q.Limit)
	}
	if waits != "" {
		a.next([]string{"job", "show", waits})
	}
	return nil
}
