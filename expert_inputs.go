package superstep

import (
	"context"
	"fmt"

	"superstep.dev/job"
)

// withStored is an assignment with its inputs whole.
func withStored(_ context.Context, a job.Assignment) (job.Assignment, error) {
	for _, in := range a.Inputs {
		if in.Stored != nil && in.Text == "" {
			return a, fmt.Errorf("job %s: subjob %s: the output of subjob %s is stored with thread %s, and nothing can read it here",
				a.Job, a.SubJob, in.SubJob, in.Stored.Thread)
		}
	}
	return a, nil
}
