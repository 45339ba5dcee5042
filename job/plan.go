package job

import (
	"context"
	"fmt"
)

// Planner turns a job, or a subjob that is too complicated, into smaller ones. It is called in an activity: it may be
// slow, and may be called again when a worker is lost.
//
// A *[BadPlanError] says that an answer came, and is of no use: it costs one of the job's plan attempts, and the next one
// is told what was wrong. Every other error is of the way there and costs none; Temporal retries it.
type Planner interface {
	Plan(ctx context.Context, req PlanRequest) (Draft, error)
}

// PlanRequest is what a planner is told.
type PlanRequest struct {
	Job     Job       `json:"job"`
	Experts []Profile `json:"experts"`
	// SubJob is what to plan when it is not the whole job, with the Report of the attempt that found it too complicated
	// and the Inputs that it had.
	SubJob *SubJob          `json:"subjob,omitempty"`
	Report *WorkflowMessage `json:"report,omitempty"`
	Inputs []Input          `json:"inputs,omitempty"`
	// Attempt counts from 1. Lesson is what was wrong with the last one's answer, or what a person wants changed.
	Attempt int    `json:"attempt"`
	Lesson  string `json:"lesson,omitempty"`
	// MaxSubJobs is how many subjobs the plan may have.
	MaxSubJobs int `json:"max_subjobs"`
}

// Draft is a plan as a planner or a person writes it.
type Draft struct {
	SubJobs []DraftSubJob `json:"subjobs"`
	// Usage is what planning has cost.
	Usage Usage `json:"usage,omitzero"`
}

// DraftSubJob is a subjob of a [Draft]. Its id is the planner's own, and means something within the draft only.
type DraftSubJob struct {
	ID                 string   `json:"id"`
	Goal               string   `json:"goal"`
	Context            string   `json:"context,omitempty"`
	CompletionCriteria string   `json:"completion_criteria,omitempty"`
	Dependencies       []string `json:"dependencies,omitempty"`
	Expert             string   `json:"assigned_expert"`
	Thinking           string   `json:"thinking,omitempty"`
	OutputSchema       string   `json:"output_schema,omitempty"`
}

// BadPlanError says why a plan cannot be used, so that whoever made it can make a better one.
type BadPlanError struct {
	// SubJob is the draft's id of the subjob that is wrong, "" for the plan as a whole.
	SubJob  string
	Problem string
}

func (e *BadPlanError) Error() string {
	if e.SubJob == "" {
		return "the plan cannot be used: " + e.Problem
	}
	return fmt.Sprintf("the plan cannot be used: subjob %q: %s", e.SubJob, e.Problem)
}

// Decision is what a person says to a plan that waits for approval.
type Decision struct {
	// PlanVersion is the plan that was looked at; another one waits by now is a refusal.
	PlanVersion int `json:"plan_version"`
	// Verdict is "approve", "edit" (Plan takes the place of what was proposed), "replan" (the planner makes another one
	// with Reason as its lesson) or "reject" (the job stops).
	Verdict string `json:"verdict"`
	Plan    *Draft `json:"plan,omitempty"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
}
