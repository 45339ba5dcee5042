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
	find    workflows.Find
}

// New returns the workflow over these leaders, whose runs find around them what find says: see [workflows.Config].
func New(find workflows.Find, leaders ...workflows.Leader) *Leaders {
	ls := &Leaders{experts: map[string][]job.Profile{}, find: find}
	for _, l := range leaders {
		ls.experts[l.Name] = l.Experts
	}
	return ls
}

// Register registers the workflow on a worker or a replayer.
func (ls *Leaders) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(ls.Lead, workflow.RegisterOptions{Name: protocol.LeaderWorkflow})
}

// beginning is what a run learns from its first worker. It is part of the run's history, so that a later deploy does not change
// the job.
type beginning struct {
	Experts []job.Profile   `json:"experts,omitempty"`
	Found   *protocol.Found `json:"found,omitempty"`
}

// begin completes the input of a run with what this worker serves, and returns the experts that a new job begins with. A leader
// that this worker does not have makes the workflow task fail, which the server repeats on any worker: the job waits for a
// deploy, it does not fail.
func (ls *Leaders) begin(ctx workflow.Context, in *protocol.LeaderInput) []job.Profile {
	served, ok := ls.experts[in.Leader]
	switch {
	case in.Board != nil && in.Found != nil:
		return nil
	case in.Board == nil && !ok:
		names := workflow.DeterministicKeys(ls.experts)
		slices.Sort(names)
		panic(fmt.Sprintf("this worker does not serve the leader %q, it serves %v: start a worker that does", in.Leader, names))
	}
	var b beginning
	recorded := workflow.SideEffect(ctx, func(ctx workflow.Context) any {
		return beginning{Experts: served, Found: ls.find.In(workflow.GetInfo(ctx).Namespace)}
	})
	if err := recorded.Get(&b); err != nil {
		panic(fmt.Sprintf("what the job of leader %q began with cannot be read: %v", in.Leader, err))
	}
	if in.Found == nil {
		in.Found = b.Found
	}
	return b.Experts
}
