package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/job"
)

// submitFlags are the flags of job submit, and what they submit.
type submitFlags struct {
	superstep.SubmitJob
	goal, goalFile, context string
	budget                  budgetFlags
	follow                  bool
}

func (a jobs) submitCommand() *cobra.Command {
	var f submitFlags
	return a.build(command{
		use: "submit", short: "Give a leader a job",
		about: `The goal comes from --goal, --goal-file or standard input. With --expert nothing is planned: that expert does the whole
job. With --approve somebody decides on the plan before anything of it runs. What may be spent is unlimited unless a limit is
given; a job that has spent it waits until the budget is raised.`,
		example: []string{
			`job submit --leader research --goal "Which penguins are heaviest?" --follow`,
			`job submit --leader research --id report-3 --goal-file goal.txt --context @notes.txt --approve first`,
			`job submit --leader research --goal "Load the table" --expert loader --tokens 50000 --usd 0.50 --time 20m`,
		},
		flags: func(flags *pflag.FlagSet) {
			j := &f.Job
			flags.StringVar(&f.Leader, "leader", "", "`NAME` of the leader (default: this program's, if it has one)")
			flags.StringVar(&f.goal, "goal", "", "`TEXT` of what is to be done; - for standard input; at most 8 KiB")
			flags.StringVar(&f.goalFile, "goal-file", "", "`FILE` with the goal")
			flags.StringVar(&f.context, "context", "", "`TEXT`, @FILE, or - of what is known already; at most 32 KiB")
			flags.StringVar(&j.ID, "id", "", "`ID` of the job, at most 64 bytes (default: the leader's name and a random part)")
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
	case j.Policy.MaxParallel < 0 || j.Policy.MaxParallel > 100:
		return usagef("--max-parallel %d is not between 1 and 100", j.Policy.MaxParallel)
	case f.goal != "" && f.goalFile != "":
		return usagef("--goal and --goal-file exclude each other")
	case f.context == "-" && (f.goal == "-" || f.goal == "" && f.goalFile == ""):
		return usagef("the goal and --context cannot both come from standard input")
	}
	if j.ID == "" {
		j.ID = a.newThread(f.Leader)
	}
	if j.Budget, err = f.budget.budget(); err == nil {
		err = cmp.Or(checkGraphName(f.Leader), checkJob(j.ID))
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
