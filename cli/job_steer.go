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

// haltCommand is a command that ends a job, on account of one of its subjobs or not.
func (a jobs) haltCommand(name string, halt func(service, context.Context, string, job.Halt) (job.View, error)) *cobra.Command {
	h := job.Halt{}
	return a.build(command{
		name: name, ownChecks: true,
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
		name: "job recover",
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
		name: "job retry",
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
		name: "job experts",
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
