package job_test

import (
	"testing"

	"superstep.dev/job"
)

func TestOf(t *testing.T) {
	for workflowID, want := range map[string]string{
		job.WorkflowID("r-3"):                  "r-3",
		job.AttemptThread("r-3", "p1-load", 2): "r-3",
		"r-3":                                  "",
		"jobs/r-3":                             "",
		"":                                     "",
	} {
		if got := job.Of(workflowID); got != want {
			t.Errorf("%q is of job %q, not %q", workflowID, got, want)
		}
	}
}
