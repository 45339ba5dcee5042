package cli

import (
	"context"

	"github.com/spf13/cobra"

	"superstep.dev/job"
)

func (a *app) jobStopCommand() *cobra.Command {
	return a.jobHaltCommand("stop", "Stop a job", `Attempts under way are told to end, and are waited for; what finished is kept, and recover does the rest. A job that has
finished or failed stays as it is, and the command fails.`,
		service.StopJob, `job stop report-3 --reason "the data is wrong"`, "job stop report-3 p1-load")
}

func (a *app) jobFailCommand() *cobra.Command {
	return a.jobHaltCommand("fail", "Say that a job, or a subjob, has failed", `Attempts under way are told to end, and are waited for; then the job has failed, and the subjob that is named has too,
whatever its attempt says. What finished is kept, and recover does the rest.`,
		service.FailJob, `job fail report-3 p1-load --reason "the source is forged"`, `job fail report-3`)
}

// jobHaltCommand is a command that ends a job, on account of one of its subjobs or not.
func (a *app) jobHaltCommand(name, short, about string, halt func(service, context.Context, string, job.Halt) (job.View, error), example ...string) *cobra.Command {
	h := job.Halt{}
	cmd := a.build(command{
		use: name + " JOB [SUBJOB]", short: short, args: []string{"JOB", "[SUBJOB]"}, example: example,
		about: about + ` The thread of an attempt, job/JOB/s/SUBJOB/aATTEMPT, stands for both.`,
		run: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(h.Reason, maxReason); err != nil {
				return err
			}
			id := args[0]
			if of, subjob := job.OfAttempt(id); subjob != "" && len(args) == 1 {
				id, h.SubJob = of, subjob
			}
			if len(args) > 1 {
				h.SubJob = args[1]
			}
			if h.SubJob != "" {
				if err := checkID("the subjob's id", h.SubJob); err != nil {
					return err
				}
			}
			h.By = a.userName()
			return onJob(a, cmd.Context(), id, func(svc service, ctx context.Context, id string) (job.View, error) {
				return halt(svc, ctx, id, h)
			}, a.showSteered)
		},
	})
	cmd.Flags().StringVar(&h.Reason, "reason", "", "`TEXT` for those who look later")
	return cmd
}

func (a *app) jobRecoverCommand() *cobra.Command {
	var r job.Recover
	cmd := a.build(command{
		use: "recover JOB", short: "Let a job go on that was stopped or has failed", args: []string{"JOB"},
		about: `What had finished is kept, and only the rest runs; --again names finished subjobs to do again, with what depends on
them. --lesson is told to the subjobs that had failed, were stopped under way, or are to be done again; without any to all
that are left.`,
		example: []string{"job recover report-3", `job recover report-3 --again load --lesson "the file has moved to data/v2.csv"`},
		run: func(cmd *cobra.Command, args []string) error {
			r.By = a.userName()
			for _, id := range r.Again {
				if err := checkID("--again", id); err != nil {
					return err
				}
			}
			if len(r.Lesson) > job.MaxNote {
				return usagef("--lesson has %d bytes; at most %d are allowed", len(r.Lesson), job.MaxNote)
			}
			return onJob(a, cmd.Context(), args[0], func(svc service, ctx context.Context, id string) (job.View, error) {
				return svc.RecoverJob(ctx, id, r)
			}, a.showSteered)
		},
	})
	cmd.Flags().SortFlags = false
	cmd.Flags().StringSliceVar(&r.Again, "again", nil, "`SUBJOBS` to do again although they finished")
	cmd.Flags().StringVar(&r.Lesson, "lesson", "", "`TEXT` for the subjobs that are to do better")
	return cmd
}

func (a *app) jobRetryCommand() *cobra.Command {
	var lesson string
	cmd := a.build(command{
		use: "retry JOB SUBJOB", short: "Do one subjob of a running job again", args: []string{"JOB", "SUBJOB"},
		about:   `What depends on it is done again too. Of a job that has ended, recover --again does the same.`,
		example: []string{`job retry report-3 load --lesson "drop the empty rows"`},
		run: func(cmd *cobra.Command, args []string) error {
			if err := checkID("the subjob's id", args[1]); err != nil {
				return err
			}
			if len(lesson) > job.MaxNote {
				return usagef("--lesson has %d bytes; at most %d are allowed", len(lesson), job.MaxNote)
			}
			return onJob(a, cmd.Context(), args[0], func(svc service, ctx context.Context, id string) (job.View, error) {
				return svc.RetrySubJob(ctx, id, args[1], lesson)
			}, a.showSteered)
		},
	})
	cmd.Flags().StringVar(&lesson, "lesson", "", "`TEXT` that the next attempt is told")
	return cmd
}

func (a *app) jobBudgetCommand() *cobra.Command {
	var f budgetFlags
	cmd := a.build(command{
		use: "budget JOB", short: "Show or raise what a job may spend", args: []string{"JOB"},
		about:   `Without a flag it shows what is spent. A job that waits because its budget is spent goes on when it is raised.`,
		example: []string{"job budget report-3", "job budget report-3 --tokens 200000 --time 1h"},
		run: func(cmd *cobra.Command, args []string) error {
			b, err := f.budget()
			if err != nil {
				return err
			}
			return onJob(a, cmd.Context(), args[0], func(svc service, ctx context.Context, id string) (job.View, error) {
				if b == (job.Budget{}) {
					v, err := svc.Job(ctx, id)
					return v.View, err
				}
				return svc.RaiseBudget(ctx, id, b)
			}, a.showBudget)
		},
	})
	cmd.Flags().SortFlags = false
	f.register(cmd.Flags())
	return cmd
}

// showSteered shows where a job stands that was told something.
func (a *app) showSteered(v job.View) error {
	a.printf("%s\n", a.jobLine(v))
	a.next(nextOfJob(v))
	return nil
}

func (a *app) showBudget(v job.View) error {
	a.printf("%s\n", a.jobLine(v))
	t := newTable("WHAT", "SPENT", "MOST")
	for _, l := range limitsOf(v) {
		t.row(l.what, l.spent, l.most)
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if v.Spent.Unknown {
		a.printf("some attempts could not tell what they spent: what was set aside for them is counted\n")
	}
	return nil
}
