package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// jobs are the commands about what leaders do.
type jobs struct{ *app }

func (a jobs) command() *cobra.Command {
	cmd := a.parent("job")
	cmd.AddCommand(a.submitCommand(), a.listCommand(), a.showCommand(), a.answerCommand(), a.planCommand(), a.haltCommand("job stop", service.StopJob),
		a.haltCommand("job fail", service.FailJob), a.recoverCommand(), a.retryCommand(), a.expertsCommand(), a.budgetCommand())
	return cmd
}

func (a jobs) listCommand() *cobra.Command {
	var q thread.JobsQuery
	var status string
	of := []string{"running", "finished", "failed", "stopped"}
	return a.build(command{
		name: "job list",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&q.Leader, "leader", "", "only jobs of `LEADER`")
			choiceVar(flags, &status, "status", "", of, "only jobs whose `STATUS` is "+screen.OneOf(of))
			flags.IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("at most `N` jobs, up to %d", mostListed))
			a.archived(flags)
		},
		run: func(ctx context.Context, _ []string) error {
			q.Status = job.Status(strings.ToUpper(status))
			if err := checkBetween("--limit", q.Limit, 1, mostListed); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) ([]thread.JobItem, error) {
				items, err := svc.Jobs(ctx, q)
				return listed(items), err
			}, func(items []thread.JobItem) { a.showList(items, q) })
		},
	})
}

func (a jobs) showList(items []thread.JobItem, q thread.JobsQuery) {
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

// submitFlags are the flags of job submit, and what they submit.
type submitFlags struct {
	thread.SubmitJob
	goal, goalFile, context string
	budget                  budgetFlags
	follow                  bool
}

func (a jobs) submitCommand() *cobra.Command {
	var f submitFlags
	return a.build(command{
		name: "job submit",
		flags: func(flags *pflag.FlagSet) {
			j := &f.Job
			flags.StringVar(&f.Leader, "leader", "", "`NAME` of the leader (default: this program's, if it has one)")
			flags.StringVar(&f.goal, "goal", "", "`TEXT` of what is to be done; - for standard input; at most 8 KiB")
			flags.StringVar(&f.goalFile, "goal-file", "", "`FILE` with the goal")
			flags.StringVar(&f.context, "context", "", "`TEXT`, @FILE, or - of what is known already; at most 32 KiB")
			flags.StringVar(&j.ID, "id", "", "`ID` of the job, at most 64 bytes (default: the leader's name and a random part, of a --request-id always the same)")
			flags.StringVar(&j.Expert, "expert", "", "`NAME` of the expert who does the whole job, without a plan")
			flags.StringVar(&j.Policy.Synthesis, "synthesis", "", "`NAME` of the expert who makes one answer of the last outputs")
			choiceVar(flags, &j.Policy.Approve, "approve", "", []string{"first", "all"}, "`WHICH` plans a person decides on: first or all (default: none)")
			flags.IntVar(&j.Policy.MaxParallel, "max-parallel", 0, "at most `N` attempts at once, up to 100 (default 10)")
			f.budget.register(flags)
			flags.StringVar(&j.Requester, "requester", "", "`NAME` of on whose behalf it is (default: your user name)")
			flags.StringVar(&f.RequestID, "request-id", "", "`ID` of this request, to repeat it safely (default: a new one)")
			flags.BoolVar(&f.follow, "follow", false, "show what happens until the job waits or ends")
		},
		run: func(ctx context.Context, _ []string) error { return a.submit(ctx, &f) },
	})
}

// submit submits a job and follows it when that was asked for.
func (a jobs) submit(ctx context.Context, f *submitFlags) error {
	if err := a.completeJob(ctx, f); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		v, err := svc.SubmitJob(ctx, f.SubmitJob)
		if err != nil {
			return err
		}
		if f.follow {
			if !a.JSON() {
				a.Printf("job  %s\n", screen.Clean(v.ID))
			}
			return a.follow(ctx, svc, v.ID)
		}
		a.Show(v, func() {
			a.Printf("submitted  %s\n", screen.Clean(v.ID))
			a.next("job", "show", v.ID, "--follow")
		})
		return nil
	})
}

// completeJob checks everything that can be checked without a server, and reads the goal and the context.
func (a jobs) completeJob(ctx context.Context, f *submitFlags) (err error) {
	j := &f.Job
	j.Requester = cmp.Or(j.Requester, a.userName())
	if len(a.leaders) == 1 {
		f.Leader = cmp.Or(f.Leader, a.leaders[0].Name())
	}
	switch {
	case f.Leader == "":
		return usagef("--leader is missing: who is to do it?")
	case j.Policy.MaxParallel < 0 || j.Policy.MaxParallel > 100 || j.Policy.MaxParallel == 0 && f.budget.given("max-parallel"):
		return usagef("--max-parallel %d is not between 1 and 100", j.Policy.MaxParallel)
	case f.goal != "" && f.goalFile != "":
		return usagef("--goal and --goal-file exclude each other")
	case f.context == "-" && (f.goal == "-" || f.goal == "" && f.goalFile == ""):
		return usagef("the goal and --context cannot both come from standard input")
	}
	if j.Budget, err = f.budget.budget(); err == nil {
		err = checkGraphName(f.Leader)
	}
	if j.ID == "" && f.RequestID == "" { // else the id follows from that of the request
		j.ID = a.newThread(f.Leader)
	}
	if err == nil && j.ID != "" {
		err = checkJob(j.ID)
	}
	if err != nil {
		return err
	}
	goal := cmp.Or(f.goal, "-")
	if f.goalFile != "" {
		goal = "@" + f.goalFile
	}
	if j.Goal, err = a.plainText(ctx, "the goal", goal, job.MaxGoal); err == nil && f.context != "" {
		j.Context, err = a.plainText(ctx, "--context", f.context, job.MaxContext)
	}
	return err
}
