package leading

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/job"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// Leaders are the leaders that a worker serves, and their workflow. Their planners are the activities'
// (activities.Nodes.WithPlanners), and the graphs of their experts any worker's.
type Leaders struct {
	experts map[string][]job.Profile
}

// NewLeaders returns the workflow over these leaders.
func New(leaders ...workflows.Leader) *Leaders {
	ls := &Leaders{experts: map[string][]job.Profile{}}
	for _, l := range leaders {
		ls.experts[l.Name] = l.Experts
	}
	return ls
}

// Register registers the workflow on a worker or a replayer.
func (ls *Leaders) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(ls.Lead, workflow.RegisterOptions{Name: protocol.LeaderWorkflow})
}

// recordExperts are those that a job begins with: what this worker serves becomes part of the run's history, so that a later
// deploy does not change the job. A leader that this worker does not have makes the workflow task fail, which the server
// repeats on any worker: the job waits for a deploy, it does not fail.
func (ls *Leaders) recordExperts(ctx workflow.Context, leader string) []job.Profile {
	served, ok := ls.experts[leader]
	if !ok {
		names := workflow.DeterministicKeys(ls.experts)
		slices.Sort(names)
		panic(fmt.Sprintf("this worker does not serve the leader %q, it serves %v: start a worker that does", leader, names))
	}
	var experts []job.Profile
	recorded := workflow.SideEffect(ctx, func(workflow.Context) any { return served })
	if err := recorded.Get(&experts); err != nil {
		panic(fmt.Sprintf("the recorded experts of leader %q cannot be read: %v", leader, err))
	}
	return experts
}
