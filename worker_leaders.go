package superstep

import (
	"fmt"

	"superstep.dev/job"
	"superstep.dev/workflows"
)

// leadersOf are leaders as their workflow knows them, and their planners by the leaders' names.
func leadersOf(leaders []*Leader) ([]workflows.Leader, map[string]job.Planner, error) {
	var out []workflows.Leader
	planners := map[string]job.Planner{}
	for _, l := range leaders {
		if planners[l.name] != nil {
			return nil, nil, &Error{Kind: ErrBadInput, Graph: l.name, Message: fmt.Sprintf("the leader name %q is used twice", l.name)}
		}
		planners[l.name] = l.planner
		out = append(out, workflows.Leader{Name: l.name, Experts: l.Experts()})
	}
	return out, planners, nil
}
