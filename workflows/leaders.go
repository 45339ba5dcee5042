package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/job"
)

// Leader is a leader as a worker serves it: its name, and whom its jobs may be assigned to.
type Leader struct {
	Name    string
	Experts []job.Profile
}

// Leading makes the worker serve leaders too. Their planners are the activities' (activities.Nodes.WithPlanners), and the
// graphs of their experts any worker's. It returns g.
func (g *Graphs) Leading(leaders ...Leader) *Graphs {
	g.leaders = map[string]Leader{}
	for _, l := range leaders {
		g.leaders[l.Name] = l
	}
	return g
}

// experts are those that a job begins with: what this worker serves becomes part of the run's history, so that a later
// deploy does not change the job. A leader that this worker does not have makes the workflow task fail, which the server
// repeats on any worker: the job waits for a deploy, it does not fail.
func (g *Graphs) experts(ctx workflow.Context, leader string) []job.Profile {
	served, ok := g.leaders[leader]
	if !ok {
		panic(fmt.Sprintf("this worker does not serve the leader %q, it serves %v: start a worker that does", leader, g.leaderNames()))
	}
	var experts []job.Profile
	recorded := workflow.SideEffect(ctx, func(workflow.Context) any { return served.Experts })
	if err := recorded.Get(&experts); err != nil {
		panic(fmt.Sprintf("the recorded experts of leader %q cannot be read: %v", leader, err))
	}
	return experts
}
