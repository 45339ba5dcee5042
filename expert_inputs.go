package superstep

import (
	"context"
	"fmt"
	"slices"

	"superstep.dev/activities"
	"superstep.dev/job"
)

// withStored is an assignment with its inputs whole: long ones are stored with the attempts that made them, and read there.
func withStored(ctx context.Context, a job.Assignment) (job.Assignment, error) {
	missing := func(in job.Input) bool { return in.Stored != nil && in.Text == "" }
	if !slices.ContainsFunc(a.Inputs, missing) {
		return a, nil
	}
	outputs := activities.OutputsFrom(ctx)
	if outputs == nil {
		return a, fmt.Errorf("job %s: subjob %s: its inputs are stored on a server, and this is no worker: give them whole: %w",
			a.Job, a.SubJob, ErrBadInput)
	}
	a.Inputs = slices.Clone(a.Inputs)
	if err := outputs.Fill(ctx, a.Inputs); err != nil {
		return a, fmt.Errorf("job %s: subjob %s: %w", a.Job, a.SubJob, err)
	}
	return a, nil
}
