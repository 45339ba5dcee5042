package research

import (
	"encoding/json"
	"fmt"

	"superstep.dev/job"
	"superstep.dev/job/planner"
)

// Rules is a planner that needs no model: it plans every goal as an analysis that is checked and written down, and an
// analysis that is too complicated as one for each species.
func Rules() job.Planner {
	return planner.Rules{
		Jobs: []planner.Rule{{SubJobs: []job.DraftSubJob{
			{ID: "load", Expert: "loader", Goal: "Read and check the birds.",
				CompletionCriteria: "Every line is read, and what it does not tell is known."},
			{ID: "analyse", Expert: "analyst", Goal: "Describe the birds that this is about: {{.Goal}}", Dependencies: []string{"load"},
				CompletionCriteria: "Each measure has a mean, a deviation and an interval."},
			{ID: "check", Expert: "critic", Goal: "Check every figure against the birds.", Dependencies: []string{"analyse"},
				CompletionCriteria: "No figure is wrong."},
			{ID: "write", Expert: "writer", Goal: "Write and publish the report.", Dependencies: []string{"check"},
				CompletionCriteria: "The report is published once."},
		}}},
		TooComplicated: []planner.Rule{{Expert: "analyst", Plan: eachSpecies}},
	}
}

// eachSpecies plans an analysis of several species as one for each that the analyst has named.
func eachSpecies(req job.PlanRequest) ([]job.DraftSubJob, error) {
	var found TooMany
	if err := json.Unmarshal([]byte(req.Report.Output), &found); err != nil {
		return nil, fmt.Errorf("the analyst does not say of which species there are too many: %w", err)
	}
	subjobs := make([]job.DraftSubJob, len(found.Species))
	for i, species := range found.Species {
		subjobs[i] = job.DraftSubJob{ID: fmt.Sprint("species-", i+1), Expert: "analyst", Goal: "Describe the " + species + " penguins.",
			CompletionCriteria: req.SubJob.CompletionCriteria}
	}
	return subjobs, nil
}
