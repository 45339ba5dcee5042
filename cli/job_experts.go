package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/job"
)

func (a *app) jobExpertsCommand() *cobra.Command {
	var add, remove []string
	cmd := a.build(command{
		use: "experts JOB", short: "List, add or remove a running job's experts", args: []string{"JOB"},
		about: `A job keeps the experts that its leader had when it began. --add takes experts that the leader has by now: a worker
that serves it says so. What is planned from then on may use them. One that is removed still does what it is assigned to.`,
		example: []string{"job experts report-3", "job experts report-3 --add translator", "job experts report-3 --remove critic"},
		run: func(cmd *cobra.Command, args []string) error {
			return onJob(a, cmd.Context(), args[0], func(svc service, ctx context.Context, id string) ([]job.Profile, error) {
				return changeExperts(ctx, svc, id, add, remove)
			}, a.showExperts)
		},
	})
	cmd.Flags().SortFlags = false
	cmd.Flags().StringSliceVar(&add, "add", nil, "`NAMES` of the leader's experts to add")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "`NAMES` of experts to remove")
	return cmd
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
func profilesOf(ctx context.Context, svc service, leader string, names []string) ([]job.Profile, error) {
	if len(names) == 0 {
		return nil, nil
	}
	served, err := svc.LeaderExperts(ctx, leader)
	if err != nil {
		return nil, err
	}
	var out []job.Profile
	for _, name := range names {
		at := slices.IndexFunc(served, func(p job.Profile) bool { return p.Name == name })
		if at < 0 {
			return nil, &superstep.Error{Kind: superstep.ErrNotFound, Graph: leader,
				Message: "leader " + quoted(leader) + " has no expert " + quoted(name) + "; it has " + list(namesOf(served)),
				Do:      "Deploy a worker whose leader has it, then add it"}
		}
		out = append(out, served[at])
	}
	return out, nil
}

func namesOf(profiles []job.Profile) []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return names
}

func (a *app) showExperts(profiles []job.Profile) error {
	t := newTable("EXPERT", "VERSION", "DOES")
	for _, p := range profiles {
		t.row(p.Name, p.Version, shorten(clean(p.Description), cellWidth))
	}
	return t.writeTo(a.stdout, "")
}
