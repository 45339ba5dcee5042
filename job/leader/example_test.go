package leader_test

import (
	"context"
	"fmt"
	"strings"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// An expert says how an attempt ended with a status; a message that its predecessors can use is a lesson.
func ExampleNewExpert() {
	count := leader.NewExpert("count", "Counts the words of what it is given. Returns a number.",
		func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			if len(a.Inputs) == 0 || a.Inputs[0].Text == "" {
				return job.WorkflowMessage{Status: job.InputDataError, Lesson: "give me a text"}, nil
			}
			if err := superstep.Spend(ctx, superstep.Usage{Tokens: 3}); err != nil { // before a call that costs as much
				return job.WorkflowMessage{}, err
			}
			return job.WorkflowMessage{Status: job.Success, Output: fmt.Sprint(len(strings.Fields(a.Inputs[0].Text)))}, nil
		})
	result, err := count.Graph().Invoke(context.Background(),
		job.Assignment{Job: "j", SubJob: "2", Expert: "count", Inputs: []job.Input{{SubJob: "1", Text: "one two three"}}})
	fmt.Println(result.Output.Status, result.Output.Output, result.Output.Usage.Tokens, err)
	// Output: SUCCESS 3 3 <nil>
}

// loudly is a planner: a [job.Planner].
type loudly struct{}

func (loudly) Plan(_ context.Context, req job.PlanRequest) (job.Draft, error) {
	return job.Draft{SubJobs: []job.DraftSubJob{
		{ID: "1", Goal: req.Job.Goal, Expert: "write"},
		{ID: "2", Goal: "make it loud", Expert: "shout", Dependencies: []string{"1"}},
	}}, nil
}

// A leader's planner divides a job, here always in the same way; its experts do the parts.
func ExampleLeader_Invoke() {
	write := leader.NewExpert("write", "Writes a text about a subject.",
		func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			return job.WorkflowMessage{Status: job.Success, Output: "All about " + a.Goal}, nil
		})
	shout := leader.NewExpert("shout", "Writes what it is given in capitals.",
		func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			return job.WorkflowMessage{Status: job.Success, Output: strings.ToUpper(a.Inputs[0].Text)}, nil
		})
	lead, err := leader.New("press", loudly{}, write, shout)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := lead.Invoke(context.Background(), job.Job{Goal: "penguins"})
	fmt.Println(answer.Text, err)
	// Output: ALL ABOUT PENGUINS <nil>
}
