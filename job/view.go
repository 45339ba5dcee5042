package job

import "time"

// View is a job as people see it: its board without what only a planner or an expert reads.
type View struct {
	ID          string    `json:"id"`
	Leader      string    `json:"leader,omitempty"`
	Goal        string    `json:"goal"`
	Requester   string    `json:"requester,omitempty"`
	Status      Status    `json:"status"`
	Phase       Phase     `json:"phase,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	PlanVersion int       `json:"plan_version"`
	Started     time.Time `json:"started,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`
	// Duration is the time that the job has run, without the time that it was stopped.
	Duration time.Duration `json:"duration"`
	Spent    Usage         `json:"spent,omitzero"`
	Budget   Budget        `json:"budget,omitzero"`
	// Finished of Total subjobs of the plan that counts are finished.
	Finished int `json:"finished"`
	Total    int `json:"total"`
	// SubJobs are in topological order, those that were replaced behind what replaced them. Contexts, schemas and outputs
	// are left out.
	SubJobs []SubJob  `json:"subjobs,omitempty"`
	Experts []Profile `json:"experts,omitempty"`
	// Proposed is the plan that waits for a decision, nil when none does.
	Proposed *Draft `json:"proposed,omitempty"`
	// Tails are the subjobs whose outputs are the answer, in topological order.
	Tails []string `json:"tails,omitempty"`
	// LastEvent is the number of the newest event.
	LastEvent int64 `json:"last_event"`
}
