package job_test

import (
	"fmt"
	"time"

	"superstep.dev/job"
)

// A driver does what the board asks for, and tells it what happened. This one runs attempts one after the other; the
// expert that sums finds the numbers of no use the first time.
func ExampleBoard() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	experts := []job.Profile{
		{Name: "loader", Description: "loads numbers from files", Graph: "loader"},
		{Name: "analyst", Description: "computes with numbers", Graph: "analyst"},
	}
	b, err := job.New(job.Job{ID: "sum", Goal: "the sum of the numbers"}, experts, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		w := b.Ready(now)
		if w.Done {
			break
		}
		if w.Plan != nil {
			b.Planned(job.Draft{SubJobs: []job.DraftSubJob{
				{ID: "load", Goal: "load the numbers", Expert: "loader"},
				{ID: "sum", Goal: "sum the numbers", Expert: "analyst", Dependencies: []string{"load"}},
			}}, nil, now)
		}
		for _, a := range w.Run {
			fmt.Println(a.Expert, "is asked to", a.Goal, a.Lessons)
			b.Reported(job.Attempt{SubJob: a.SubJob, Attempt: a.Attempt}, do(a), now)
		}
	}
	fmt.Println(b.Status, b.Answer()[0].Text)
	// Output:
	// loader is asked to load the numbers []
	// analyst is asked to sum the numbers []
	// loader is asked to load the numbers [x is no number]
	// analyst is asked to sum the numbers []
	// FINISHED 3
}

func do(a job.Assignment) job.WorkflowMessage {
	switch {
	case a.Expert == "loader" && len(a.Lessons) == 0:
		return job.WorkflowMessage{Status: job.Success, Output: "1 2 x"}
	case a.Expert == "loader":
		return job.WorkflowMessage{Status: job.Success, Output: "1 2"}
	case a.Inputs[0].Text == "1 2":
		return job.WorkflowMessage{Status: job.Success, Output: "3"}
	}
	return job.WorkflowMessage{Status: job.InputDataError, Lesson: "x is no number"}
}
