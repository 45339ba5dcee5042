package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/job"
)

// jobs are the commands about what leaders do.
type jobs struct{ *app }

func (a jobs) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "job", Short: "Give leaders jobs, and steer them",
		Long: `Give leaders jobs, and steer them.

A leader has a job planned into subjobs that depend on each other, has its experts do them, and sees to what follows when
one fails, when its input is of no use, or when it is too complicated. Each attempt of a subjob is a thread:
job/JOB/s/SUBJOB/aATTEMPT, which show, stream and resume work on.`,
		Example: strings.Join([]string{
			"  " + a.program + ` job submit --leader research --id report-3 --goal "Which penguins are heaviest?" --follow`,
			"  " + a.program + " job show report-3",
			"  " + a.program + " job answer report-3",
		}, "\n"),
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(a.submitCommand(), a.listCommand(), a.showCommand(), a.answerCommand(), a.planCommand(), a.stopCommand(),
		a.failCommand(), a.recoverCommand(), a.retryCommand(), a.expertsCommand(), a.budgetCommand())
	return cmd
}

func (a jobs) listCommand() *cobra.Command {
	var q superstep.JobsQuery
	var status string
	of := []string{"running", "finished", "failed", "stopped"}
	return a.build(command{
		use: "list", short: "List jobs",
		about:   `The jobs known to the server, the latest first. Its index is a moment behind.`,
		example: []string{"job list", "job list --leader research --status failed", "job list -o json"},
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&q.Leader, "leader", "", "only jobs of `LEADER`")
			choiceVar(flags, &status, "status", "", of, "only jobs whose `STATUS` is "+screen.OneOf(of))
			flags.IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("at most `N` jobs, up to %d", mostListed))
		},
		run: func(ctx context.Context, _ []string) error {
			q.Status = job.Status(strings.ToUpper(status))
			if err := checkBetween("--limit", q.Limit, 1, mostListed); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) ([]superstep.JobItem, error) {
				items, err := svc.Jobs(ctx, q)
				return listed(items), err
			}, func(items []superstep.JobItem) { a.showList(items, q) })
		},
	})
}

func (a jobs) showList(items []superstep.JobItem, q superstep.JobsQuery) {
	if len(items) == 0 {
		a.Printf("no jobs\n")
		return
	}
	t := a.Table("JOB", "LEADER", "STATUS", "STARTED", "GOAL")
	waits := ""
	for _, i := range items {
		status := string(i.Status)
		if i.Waits {
			status += " (waits)"
			waits = cmp.Or(waits, i.ID)
		}
		t.Row(i.ID, i.Leader, status, a.Ago(i.Started), goalCell(i.Goal))
	}
	t.Print("")
	if len(items) == q.Limit {
		a.Printf("%d shown; there may be more: --limit, --leader, --status\n", q.Limit)
	}
	if waits != "" {
		a.next("job", "show", waits)
	}
}

// goalCell is a goal in a table of many columns.
func goalCell(goal string) string { return screen.Shorten(screen.Clean(goal), screen.CellWidth-40) }

// steering makes a command of one call about a job that changes the job or leaves it as it is, and shows where it stands.
func (a jobs) steering(c command, do func(ctx context.Context, svc service, args []string) (job.View, error), check func() error) *cobra.Command {
	c.run = func(ctx context.Context, args []string) error {
		if err := check(); err != nil {
			return err
		}
		return call(ctx, a.app, func(svc service) (job.View, error) { return do(ctx, svc, args) }, a.showSteered)
	}
	return a.build(c)
}

// showSteered shows where a job stands that was told something.
func (a jobs) showSteered(v job.View) {
	a.Printf("%s\n", jobLine(v))
	a.next(nextOfJob(v)...)
}
