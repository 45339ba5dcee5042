package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

func (a jobs) stopCommand() *cobra.Command {
	return a.haltCommand("stop", "Stop a job", `Attempts under way are told to end, and are waited for; what finished is kept, and recover does the rest. A job that has
finished or failed stays as it is, and the command fails.`,
		service.StopJob, `job stop report-3 --reason "the data is wrong"`, "job stop report-3 p1-load")
}

func (a jobs) failCommand() *cobra.Command {
	return a.haltCommand("fail", "Say that a job, or a subjob, has failed", `Attempts under way are told to end, and are waited for; then the job has failed, and the subjob that is named has too,
whatever its attempt says. What finished is kept, and recover does the rest.`,
		service.FailJob, `job fail report-3 p1-load --reason "the source is forged"`, `job fail report-3`)
}

// haltCommand is a command that ends a job, on account of one of its subjobs or not.
func (a jobs) haltCommand(name, short, about string, halt func(service, context.Context, string, job.Halt) (job.View, error), example ...string) *cobra.Command {
	h := job.Halt{}
	return a.build(command{
		use: name + " JOB [SUBJOB]", short: short, example: example, ownChecks: true,
		about: about + ` The thread of an attempt, job/JOB/s/SUBJOB/aATTEMPT, stands for both.`,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&h.Reason, "reason", "", "`TEXT` for those who look later")
		},
		run: func(ctx context.Context, args []string) error {
			if err := checkLength("--reason", h.Reason, maxJobReason); err != nil {
				return err
			}
			if of, subjob := job.OfAttempt(args[0]); subjob != "" && args[1] == "" {
				args = []string{of, subjob}
			}
			if err := checkArguments([]string{"JOB", "[SUBJOB]"}, args); err != nil {
				return err
			}
			h.SubJob, h.By = args[1], a.userName()
			return call(ctx, a.app, func(svc service) (job.View, error) { return halt(svc, ctx, args[0], h) }, a.showSteered)
		},
	})
}

func (a jobs) recoverCommand() *cobra.Command {
	var r job.Recover
	return a.steering(command{
		use: "recover JOB", short: "Let a job go on that was stopped or has failed",
		about: `What had finished is kept, and only the rest runs; --again names finished subjobs to do again, with what depends on
them. --lesson is told to the subjobs that had failed, were stopped under way, or are to be done again; without any to all
that are left.`,
		example: []string{"job recover report-3", `job recover report-3 --again load --lesson "the file has moved to data/v2.csv"`},
		flags: func(flags *pflag.FlagSet) {
			flags.StringSliceVar(&r.Again, "again", nil, "`SUBJOBS` to do again although they finished")
			flags.StringVar(&r.Lesson, "lesson", "", "`TEXT` for the subjobs that are to do better")
		},
	}, func(ctx context.Context, svc service, args []string) (job.View, error) {
		r.By = a.userName()
		return svc.RecoverJob(ctx, args[0], r)
	}, func() error {
		for _, id := range r.Again {
			if err := checkID("--again", id); err != nil {
				return err
			}
		}
		return checkLength("--lesson", r.Lesson, job.MaxNote)
	})
}

func (a jobs) retryCommand() *cobra.Command {
	var lesson string
	return a.steering(command{
		use: "retry JOB SUBJOB", short: "Do one subjob of a running job again",
		about:   `What depends on it is done again too. Of a job that has ended, recover --again does the same.`,
		example: []string{`job retry report-3 load --lesson "drop the empty rows"`},
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&lesson, "lesson", "", "`TEXT` that the next attempt is told")
		},
	}, func(ctx context.Context, svc service, args []string) (job.View, error) {
		return svc.RetrySubJob(ctx, args[0], args[1], lesson)
	}, func() error { return checkLength("--lesson", lesson, job.MaxNote) })
}

func (a jobs) expertsCommand() *cobra.Command {
	var add, remove []string
	return a.build(command{
		use: "experts JOB", short: "List, add or remove a running job's experts",
		about: `A job keeps the experts that its leader had when it began. --add takes experts that the leader has by now: a worker
that serves it says so. What is planned from then on may use them. One that is removed still does what it is assigned to.`,
		example: []string{"job experts report-3", "job experts report-3 --add translator", "job experts report-3 --remove critic"},
		flags: func(flags *pflag.FlagSet) {
			flags.StringSliceVar(&add, "add", nil, "`NAMES` of the leader's experts to add")
			flags.StringSliceVar(&remove, "remove", nil, "`NAMES` of experts to remove")
		},
		run: func(ctx context.Context, args []string) error {
			return call(ctx, a.app, func(svc service) ([]job.Profile, error) { return changeExperts(ctx, svc, args[0], add, remove) },
				func(all []job.Profile) {
					screen.Rows(a.Screen, all, func(p job.Profile) screen.Row {
						return screen.Row{p.Name, p.Version, screen.Brief(p.Description)}
					}, "EXPERT", "VERSION", "DOES")
				})
		},
	})
}

// changeExperts returns a job's experts, changed first when there is something to change.
func changeExperts(ctx context.Context, svc service, id string, add, remove []string) ([]job.Profile, error) {
	v, err := svc.Job(ctx, id)
	if err != nil || len(add)+len(remove) == 0 {
		return v.Experts, err
	}
	profiles, err := profilesOf(ctx, svc, v.Leader, add)
	if err != nil {
		return nil, err
	}
	changed, err := svc.ChangeExperts(ctx, id, profiles, remove...)
	return changed.Experts, err
}

// profilesOf finds experts of a leader by their names.
func profilesOf(ctx context.Context, svc service, leader string, wanted []string) ([]job.Profile, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	served, err := svc.LeaderExperts(ctx, leader)
	if err != nil {
		return nil, err
	}
	var out []job.Profile
	for _, name := range wanted {
		at := slices.IndexFunc(served, func(p job.Profile) bool { return p.Name == name })
		if at < 0 {
			names := make([]string, len(served))
			for i, p := range served {
				names[i] = p.Name
			}
			return nil, &thread.Error{Kind: thread.ErrNotFound, Graph: leader,
				Message: "leader " + quoted(leader) + " has no expert " + quoted(name) + "; it has " + screen.List(names),
				Do:      "Deploy a worker whose leader has it, then add it"}
		}
		out = append(out, served[at])
	}
	return out, nil
}
